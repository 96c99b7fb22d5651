package wire

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/caisson-dev/caisson/backends/tool"
)

// read reads frames until the connection ends, and returns why it did, or nil when
// callers may read in its place. It writes nothing: two ends that both wait for the
// other one to read would wait for ever.
func (c *Client) read() error {
	for {
		if err := c.readOne(); err != nil {
			return err
		}
		if c.o.Blocks && c.mayRest() {
			return nil
		}
		giveWay(c.o.Blocks && !c.reader.buffered())
	}
}

// readOne reads one frame.
func (c *Client) readOne() error {
	next := c.reader.next
	if !c.begun {
		c.begun = true
		if c.o.Mark == "" {
			next = c.reader.first
		} else if err := c.reader.skipTo(c.o.Mark); err != nil {
			return err
		}
	}
	f, err := next()
	if err != nil {
		return err
	}
	return c.frame(f)
}

// frame takes one frame. Its error ends the connection.
func (c *Client) frame(f *rawFrame) error {
	switch string(f.method) {
	case "":
		return c.reply(f)
	case methodProcess:
		return c.event(f)
	case methodTool:
		return c.callback(f)
	case methodBody:
		return c.piece(f)
	case MethodInitialize:
		// What stands in it is the host's own, and secret.
		return &FrameError{Reason: "it sends back what it is sent, instead of answering it"}
	case methodBodyTaken:
		c.mu.Lock()
		defer c.mu.Unlock()
		if call := c.calls[string(f.id)]; call != nil && call.out != nil {
			call.out.grow(f.body)
		}
		return nil
	default:
		c.o.Log.Debug("a frame with an unknown method was ignored", "method", clip(string(f.method)))
		return nil
	}
}

// reply takes the reply to a call; one with an unknown id is ignored.
func (c *Client) reply(f *rawFrame) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[string(f.id)]
	if call == nil || call.in != nil {
		if call == nil {
			c.o.Log.Debug("a reply to nothing was ignored", "id", clip(string(f.id)), "error", clip(string(f.err)))
			return nil
		}
		return &FrameError{Reason: "a second reply to one request"}
	}
	switch {
	case len(f.err) > 0:
		call.err = peerError(f.err, f.detail)
	case f.body > call.maxBody:
		call.err = tool.Errorf(tool.ProtocolMismatch, "the far end's reply has %d bytes; at most %d are taken", f.body, call.maxBody)
	default:
		call.data = c.reader.take(f.data)
		if call.method == MethodInitialize {
			c.announced(call.data)
		}
		if f.body > 0 {
			id := string(f.id)
			call.in = newInbox(f.body, call.stream, func(ctx context.Context, total int64) error {
				return c.tellTaken(ctx, id, total)
			})
			if call.into != nil {
				call.in.whole = call.into(int(f.body))[:0]
			}
			// Whoever waits for a body that comes without his help is woken once.
			if call.stream || f.body > BodyWindow {
				c.finish(call)
			}
			return nil // it stays known until its body is there
		}
	}
	delete(c.calls, string(f.id))
	c.finish(call)
	return nil
}

// tellTaken tells the worker how much of a body was taken.
func (c *Client) tellTaken(ctx context.Context, id string, total int64) error {
	err := c.writer.send(ctx, &Frame{ID: id, Method: methodBodyTaken, Token: c.o.Token, Body: total}, nil, nil)
	if err != nil && ctx.Err() == nil {
		c.failWrite(err)
		return unknown(err)
	}
	return err
}

// announced notes the capabilities in a reply to initialize: what follows it on
// the stream already depends on them. Whether the reply is a good one is for
// Initialize to say.
func (c *Client) announced(data []byte) {
	var out Initialized
	if err := decodeJSON(data, &out); err != nil || out.Version != Version {
		return
	}
	c.caps.Store(&out.Capabilities)
	c.reader.Bulk(c.Has(CapBulk))
}

// piece takes a piece of a reply's body, or the news that the rest of it will
// not come. Pieces for a call that was given up are dropped.
func (c *Client) piece(f *rawFrame) error {
	if !c.reader.bulk {
		return nil
	}
	c.mu.Lock()
	call := c.calls[string(f.id)]
	c.mu.Unlock()
	if call == nil || call.in == nil {
		return nil
	}
	if len(f.err) > 0 {
		call.in.abort(peerError(f.err, f.detail))
		c.bodyOver(string(f.id), call)
		return nil
	}
	id := string(f.id)
	if err := call.in.receive(c.reader, f.raw); err != nil {
		return err
	}
	if call.in.complete() {
		c.bodyOver(id, call)
	}
	return nil
}

// bodyOver ends what is known of a call whose body has come, or will not.
func (c *Client) bodyOver(id string, call *call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
	c.finish(call)
}

// event takes a process event. One that cannot be understood ends the
// connection: after a reconnect the records tell what it would have.
func (c *Client) event(f *rawFrame) error {
	if c.o.OnEvent == nil {
		return nil
	}
	var e tool.ProcessEvent
	if err := decodeInto(f.data, &e); err != nil {
		return fmt.Errorf("a process event that is none: %w", err)
	}
	c.o.OnEvent(e)
	return nil
}

// callback takes a nested call and has it answered. What a peer sends beyond
// what any program can want ends the connection.
func (c *Client) callback(f *rawFrame) error {
	size := int64(len(f.data))
	if c.waiting.Add(1) > maxWaiting || c.callbackBytes.Add(size) > maxCallbackBytes {
		return errors.New("more callbacks than can be answered")
	}
	id, data := string(f.id), c.reader.take(f.data)
	ctx, err := c.admit(id, string(f.parentID))
	c.goroutines.Go(func() {
		defer func() {
			c.waiting.Add(-1)
			c.callbackBytes.Add(-size)
		}()
		var result tool.Result
		if err == nil {
			result, err = c.answer(ctx, data)
			c.mu.Lock()
			delete(c.callbacks, id)
			c.mu.Unlock()
		}
		c.sendAnswer(id, result, err)
	})
	return nil
}

// admit checks a callback and returns the context that it is answered in.
func (c *Client) admit(id, parent string) (context.Context, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	call := c.calls[parent]
	switch {
	case id == "":
		return nil, errors.New("a callback without an id")
	case c.callbacks[id]:
		return nil, errors.New("a callback with this id is not answered yet")
	case call == nil || call.in != nil || call.method != MethodRunCode:
		return nil, errors.New("the program that calls is not running")
	}
	if call.nested == nil {
		call.nested, call.cancel = context.WithCancel(call.ctx)
	}
	c.callbacks[id] = true
	return call.nested, nil
}

// answer runs a nested call when there is a place for it.
func (c *Client) answer(ctx context.Context, data []byte) (tool.Result, error) {
	if c.o.OnCallback == nil {
		return tool.Result{}, errors.New("this host answers no nested calls")
	}
	var call ToolCall
	arguments, err := call.parse(data)
	if err != nil {
		return tool.Result{}, fmt.Errorf("a call that is none: %w", err)
	}
	call.Arguments = string(arguments)
	select {
	case c.running <- struct{}{}:
		defer func() { <-c.running }()
	case <-ctx.Done():
		return tool.Result{}, ctx.Err()
	}
	return c.o.OnCallback(ctx, call)
}

// sendAnswer sends the answer to a callback, which is a request without a reply.
func (c *Client) sendAnswer(id string, result tool.Result, err error) {
	a := answer{ID: id, Data: &result}
	if err != nil {
		a.Error = errorFrame(id, err, false).Error
	}
	f := Frame{ID: id, Method: methodCallback, Token: c.o.Token}
	sendErr := c.writer.send(context.Background(), &f, a, nil)
	if sendErr != nil && !c.writer.broken() {
		a = answer{ID: id, Error: "the result cannot be sent: " + sendErr.Error()}
		sendErr = c.writer.send(context.Background(), &f, a, nil)
	}
	if sendErr != nil {
		c.failWrite(sendErr)
	}
}

// bodyReader reads the body of a streamed reply.
type bodyReader struct {
	c    *Client
	ctx  context.Context
	id   string
	in   *inbox
	rest []byte
	err  error // of the last Read, io.EOF included
}

func (b *bodyReader) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.err != nil {
			return 0, b.err
		}
		if b.rest, b.err = b.in.next(b.ctx); len(b.rest) == 0 {
			if !errors.Is(b.err, io.EOF) {
				b.err = ended(b.ctx, b.err)
			}
			return 0, b.err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// Close ends the transfer; what was not read is not sent any further.
func (b *bodyReader) Close() error {
	if b.c == nil {
		return nil
	}
	if !b.in.complete() && b.c.Err() == nil {
		b.c.cancelBody(b.id)
	}
	b.c.forget(b.id)
	b.c, b.rest, b.err = nil, nil, errors.New("read after Close")
	return nil
}
