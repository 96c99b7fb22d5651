package rpc

import (
	"context"
	"encoding/base64"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// processKey names a process of a session.
type processKey struct{ session, process string }

// subscription follows one process's output. It reads only what the client has
// room for, so that a slow client costs no memory and never slows the process;
// what the environment no longer keeps by the time the client is ready for it
// is a gap.
type subscription struct {
	server *server
	key    processKey
	offset int64
	ctx    context.Context
	cancel context.CancelFunc
	// answered is closed when the client has been told of the subscription.
	answered <-chan struct{}
	// done is closed when nothing more will be sent.
	done chan struct{}
	// room counts the chunks that may still be queued.
	room chan struct{}
}

// outputRetries is how often a read that was lost with its connection is tried
// again, after retryPause each: the next read reconnects.
const (
	outputRetries = 5
	retryPause    = 200 * time.Millisecond
)

func (r *request) processSubscribe(ctx context.Context, p *protocol.ProcessSubscribeParams) (*protocol.ProcessSubscribeResult, error) {
	process, err := r.sessions().GetProcess(ctx, p.SessionID, p.ProcessID)
	if err != nil {
		return nil, err
	}
	offset := process.TotalBytes
	if p.FromOffset != nil {
		if offset = *p.FromOffset; offset < 0 {
			return nil, invalidParams("fromOffset", "fromOffset must not be negative")
		}
	}
	r.answered = make(chan struct{})
	previous, err := r.subscribe(processKey{p.SessionID, p.ProcessID}, offset, r.answered)
	if err != nil {
		return nil, err
	}
	if err := previous.end(ctx); err != nil {
		return nil, err
	}
	return &protocol.ProcessSubscribeResult{Offset: offset, Process: toProcess(process)}, nil
}

// subscribe starts a subscription, which sends nothing before it is answered,
// in place of the one that there was, which it returns.
func (s *server) subscribe(key processKey, offset int64, answered <-chan struct{}) (previous *subscription, err error) {
	sub := &subscription{
		server:   s,
		key:      key,
		offset:   offset,
		answered: answered,
		done:     make(chan struct{}),
		room:     make(chan struct{}, protocol.MaxSubscriptionBytes/outputChunk),
	}
	sub.ctx, sub.cancel = context.WithCancel(s.ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	previous = s.subscriptions[key]
	if previous == nil && len(s.subscriptions) >= maxSubscriptions {
		sub.cancel()
		return nil, overloaded("it follows %d processes", maxSubscriptions)
	}
	s.subscriptions[key] = sub
	s.work.Go(sub.run)
	return previous, nil
}

// end ends the subscription and waits until it sends nothing more. None is
// ended already.
func (u *subscription) end(ctx context.Context) error {
	if u == nil {
		return nil
	}
	u.cancel()
	select {
	case <-u.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// processUnsubscribe is answered when nothing more will be sent.
func (r *request) processUnsubscribe(ctx context.Context, p *protocol.ProcessParams) (*protocol.Empty, error) {
	r.mu.Lock()
	sub := r.subscriptions[processKey{p.SessionID, p.ProcessID}]
	r.mu.Unlock()
	if err := sub.end(ctx); err != nil {
		return nil, err
	}
	return &protocol.Empty{}, nil
}

// run sends output until the process's end, a failure or the end of the
// subscription.
func (u *subscription) run() {
	defer u.forget()
	select {
	case <-u.answered:
	case <-u.ctx.Done():
		return
	}
	// The next piece is on its way while one is encoded.
	pieces := make(chan piece)
	u.server.work.Go(func() { u.fetch(pieces) })
	for p := range pieces {
		if p.err != nil {
			u.send(protocol.ProcessOutputParams{Offset: u.offset, Error: sessionError(p.err)})
		} else {
			u.deliver(p.ProcessOutput)
			if p.buffer != nil {
				u.server.chunks.Put(p.buffer)
			}
		}
	}
}

// piece is what a read gave.
type piece struct {
	session.ProcessOutput
	err error
	// buffer holds its data, if it is not nil.
	buffer *[outputChunk]byte
}

// fetch reads pieces until the last one, a failure or the end of the
// subscription, and closes the channel.
func (u *subscription) fetch(pieces chan<- piece) {
	defer close(pieces)
	offset, failures := u.offset, 0
	for last := false; !last && u.ctx.Err() == nil; {
		select {
		case u.room <- struct{}{}:
		case <-u.ctx.Done():
			return
		}
		var buffer *[outputChunk]byte
		out, err := u.server.sessions().ReadProcess(u.ctx, u.key.session, u.key.process, session.ReadProcess{
			Offset: &offset, MaxBytes: outputChunk, Wait: session.MaxWait,
			Buffer: func(size int) []byte {
				buffer = u.server.chunks.Get().(*[outputChunk]byte)
				return buffer[:size]
			},
		})
		switch {
		case u.ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
		case tool.KindOf(err) == tool.OutcomeUnknown && failures < outputRetries:
			failures++
			<-u.room
			u.pause()
			continue
		}
		if err == nil && len(out.Data) == 0 && !out.EOF && out.StartOffset <= offset {
			<-u.room
			continue
		}
		offset, last = out.EndOffset, out.EOF || err != nil
		select {
		case pieces <- piece{out, err, buffer}:
		case <-u.ctx.Done():
			return
		}
	}
}

// deliver sends one piece.
func (u *subscription) deliver(out session.ProcessOutput) {
	if out.StartOffset > u.offset {
		u.send(protocol.ProcessOutputParams{Offset: u.offset, Gap: true, NextOffset: out.StartOffset})
		u.offset = out.StartOffset
	}
	if len(out.Data) == 0 && !out.EOF {
		<-u.room
		return
	}
	offset := u.offset
	u.offset = out.EndOffset
	// It fails only when the connection has ended, which ends it for all.
	_ = u.server.stream.NotifyBy(protocol.MethodProcessOutput, base64.StdEncoding.EncodedLen(len(out.Data))+outputEnvelope, func(dst []byte) []byte {
		return u.appendOutput(dst, offset, out)
	}, func() { <-u.room })
}

// appendOutput writes a [protocol.ProcessOutputParams] by hand: an encoder would
// copy the base64 three times.
func (u *subscription) appendOutput(dst []byte, offset int64, out session.ProcessOutput) []byte {
	dst = appendText(append(dst, `{"sessionId":`...), u.key.session)
	dst = appendText(append(dst, `,"processId":`...), u.key.process)
	dst = strconv.AppendInt(append(dst, `,"offset":`...), offset, 10)
	if len(out.Data) > 0 {
		dst = append(dst, `,"data":"`...)
		dst = append(base64.StdEncoding.AppendEncode(dst, out.Data), '"')
	}
	if out.EOF {
		dst = append(dst, `,"eof":true`...)
	}
	return append(dst, '}')
}

// send tells the client what is no output.
func (u *subscription) send(p protocol.ProcessOutputParams) {
	p.SessionID, p.ProcessID = u.key.session, u.key.process
	u.server.notify(protocol.MethodProcessOutput, p)
}

// outputEnvelope is about what a message has beside the output, in bytes.
const outputEnvelope = 512

// pause waits before a further try.
func (u *subscription) pause() {
	timer := time.NewTimer(retryPause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-u.ctx.Done():
	}
}

// forget takes the subscription from the table, unless another replaced it.
func (u *subscription) forget() {
	u.cancel()
	close(u.done)
	u.server.mu.Lock()
	defer u.server.mu.Unlock()
	if u.server.subscriptions[u.key] == u {
		delete(u.server.subscriptions, u.key)
	}
}
