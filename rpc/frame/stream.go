package frame

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"
)

// Options say what a stream does about what it meets.
type Options struct {
	// Invalid is told of a frame that is no message, on the reading goroutine,
	// with the id of the call that it is or null. Returning nil reads on; an
	// error ends reading with it. Nil ends reading with the [Problem].
	Invalid func(Problem, jsonrpc2.ID) error
	// Decoded says that whatever comes is decoded in full before any of it is
	// passed on, so that the inside of a message need not be checked here too.
	Decoded bool
	// ReadEnd is told, once, of the error that ended reading. Nil is allowed.
	ReadEnd func(error)
	// WriteEnd is told, once, of the error that ended writing before Close:
	// one of the output, or [ErrSlowPeer]. Nil is allowed.
	WriteEnd func(error)
}

// Stream is a [jsonrpc2.Stream] over a pair of byte streams.
type Stream struct {
	o        Options
	input    io.Closer
	in       *bufio.Reader
	body     []byte
	readOnce sync.Once

	out       io.WriteCloser
	queue     queue
	together  []byte // of whoever writes
	writeDone chan struct{}
	closeOnce sync.Once
	closeErr  error
}

// New makes a stream and starts its writing goroutine, which ends with Close.
// Closing in or out must end a call that blocks on it, else Close does not
// wait for that call.
func New(in io.ReadCloser, out io.WriteCloser, o Options) *Stream {
	if o.Invalid == nil {
		o.Invalid = func(p Problem, _ jsonrpc2.ID) error { return p }
	}
	s := &Stream{
		o:         o,
		input:     in,
		in:        bufio.NewReaderSize(in, readBuffer),
		out:       out,
		writeDone: make(chan struct{}),
	}
	s.queue.init()
	go s.writeLoop()
	return s
}

// Write implements [jsonrpc2.Stream]: it queues a request or an answer and
// never waits. The context is not looked at, so that an answer to cancelled
// work is still sent.
func (s *Stream) Write(_ context.Context, msg jsonrpc2.Message) (int64, error) {
	buf := newBuffer(0)
	buf.bytes = jsonrpc2.AppendMessage(buf.bytes, msg)
	return s.push(item{buffer: buf}, true)
}

// Notify queues a notification with encoded parameters. Done, unless nil, is
// called when it has been written or the stream has ended, from a goroutine
// that must not be held up.
func (s *Stream) Notify(method string, params []byte, done func()) error {
	buf := newBuffer(0)
	buf.bytes = jsonrpc2.AppendNotification(buf.bytes, method, params)
	_, err := s.push(item{buffer: buf, notification: true, done: done}, true)
	return err
}

// NotifyBy is Notify with parameters of about size bytes that params appends to what
// it is given: long ones are encoded where they are written from.
func (s *Stream) NotifyBy(method string, size int, params func(dst []byte) []byte, done func()) error {
	buf := newBuffer(len(method) + size)
	buf.bytes = jsonrpc2.AppendNotification(buf.bytes, method, jsonrpc2.RawMessage{'0'})
	buf.bytes = append(params(buf.bytes[:len(buf.bytes)-len("0}")]), closing...)
	_, err := s.push(item{buffer: buf, notification: true, done: done}, true)
	return err
}

// Respond queues an error for what never became a request, and does not wait.
func (s *Stream) Respond(id jsonrpc2.ID, err *jsonrpc2.Error) error {
	_, pushErr := s.push(answer(id, nil, err), true)
	return pushErr
}

// Answer is an answer of a peer that works for itself: it is queued, then
// written by the calling goroutine, with what waits before it, unless somebody
// else is writing. That costs no change of goroutines, and may block for as long
// as the peer does not read. Queued is called in between, and done, unless nil,
// as with Notify. A result above [LongResult] is the stream's from now on, others are
// copied.
func (s *Stream) Answer(id jsonrpc2.ID, result jsonrpc2.RawMessage, err error, queued, done func()) error {
	it := answer(id, result, err)
	it.done = done
	_, pushErr := s.push(it, false)
	queued()
	if items, ok := s.queue.grab(); ok {
		s.write(items)
	}
	return pushErr
}

func answer(id jsonrpc2.ID, result jsonrpc2.RawMessage, err error) item {
	it := item{buffer: newBuffer(0)}
	if err == nil && len(result) > LongResult {
		it.long = result
		result = jsonrpc2.RawMessage{'0'} // its place
	}
	it.bytes = jsonrpc2.AppendResponse(it.bytes, id, result, err)
	if it.long != nil {
		it.bytes = it.bytes[:len(it.bytes)-len("0}")]
	}
	return it
}

func (s *Stream) push(it item, wake bool) (int64, error) {
	it.seal()
	n := int64(it.len())
	if err := s.queue.push(it, wake); err != nil {
		it.finish()
		if errors.Is(err, ErrSlowPeer) {
			s.writeEnd(err)
		}
		return 0, err
	}
	return n, nil
}

// Pending reports whether more has been read from the input than was returned by
// Read. It is for the goroutine that reads.
func (s *Stream) Pending() bool { return s.in.Buffered() > 0 }

// Detach leaves the message that Read returned last to whoever has it. It is for
// the goroutine that reads on in that one's place.
func (s *Stream) Detach() { s.body = nil }

// Backlog is what waits to be written: messages and bytes.
func (s *Stream) Backlog() (messages int, bytes int64) { return s.queue.backlog() }

// Room waits while more than so many messages, or bytes of notifications, wait to
// be written: for a peer that reads slowly, until ctx is done or the stream has
// ended. For one that has taken nothing for as long as patience it does not wait.
func (s *Stream) Room(ctx context.Context, messages int, bytes int64, patience time.Duration) {
	for {
		less, since, behind := s.queue.behind(messages, bytes)
		left := patience - time.Since(since)
		if !behind || left <= 0 {
			return
		}
		deaf := time.NewTimer(left)
		select {
		case <-less:
		case <-deaf.C:
		case <-ctx.Done():
			deaf.Stop()
			return
		}
		deaf.Stop()
	}
}

// Flush waits until everything queued so far has been written, writing has
// ended, or ctx is done.
func (s *Stream) Flush(ctx context.Context) error {
	for {
		idle := s.queue.idle()
		select {
		case <-idle:
		case <-s.writeDone:
			return s.queue.err()
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := s.queue.err(); err != nil {
			return err
		}
		if messages, _ := s.Backlog(); messages == 0 {
			return nil
		}
	}
}

// Close implements [jsonrpc2.Stream]. What is still queued is dropped: Flush
// first. Input and output are closed, which is what ends calls that block on
// them. What somebody else has closed is closed: who waits for a peer's process closes
// the pipes to it when it has ended.
func (s *Stream) Close() error {
	s.closeOnce.Do(func() {
		s.queue.close(ErrClosed)
		for _, c := range []io.Closer{s.out, s.input} {
			if err := c.Close(); !errors.Is(err, os.ErrClosed) {
				s.closeErr = errors.Join(s.closeErr, err)
			}
		}
	})
	return s.closeErr
}

// Done is closed when the writing goroutine has ended.
func (s *Stream) Done() <-chan struct{} { return s.writeDone }

// writeEnd ends writing for good because of err.
func (s *Stream) writeEnd(err error) {
	if s.queue.close(err) && s.o.WriteEnd != nil {
		s.o.WriteEnd(err)
	}
}

// writeLoop writes what is queued, unless somebody else does.
func (s *Stream) writeLoop() {
	defer close(s.writeDone)
	for {
		items, ok := s.queue.take()
		if !ok {
			return
		}
		s.write(items)
	}
}

// write writes what was taken from the queue: one Write for many short messages
// that wait together.
func (s *Stream) write(items []item) {
	defer s.queue.leave()
	for len(items) > 0 {
		n := short(items)
		data := items[0].data()
		if n > 1 {
			s.together = s.together[:0]
			for _, it := range items[:n] {
				s.together = append(s.together, it.data()...)
			}
			data = s.together
		}
		_, err := s.out.Write(data)
		for _, more := range [][]byte{items[0].long, closing} {
			if items[0].long != nil && err == nil {
				_, err = s.out.Write(more)
			}
		}
		s.queue.wrote(items[:n])
		if err != nil {
			s.queue.wrote(items[n:])
			s.writeEnd(err)
			return
		}
		items = items[n:]
	}
}

// short counts how many of the first items are worth writing together: at
// least one, and no more than keepBuffer bytes.
func short(items []item) int {
	sum := items[0].len()
	n := 1
	for items[0].long == nil && n < len(items) && items[n].long == nil && sum+items[n].len() <= keepBuffer {
		sum += items[n].len()
		n++
	}
	return n
}
