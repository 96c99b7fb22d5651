package wire

import (
	"context"
	"errors"
	"maps"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Close ends the connection, fails every call in flight, and waits for
// callbacks to end.
func (c *Client) Close() error {
	err := c.end(ErrClosed)
	c.goroutines.Wait()
	return err
}

// Quiesce cancels every call in flight and waits until they have ended, or ctx
// has.
func (c *Client) Quiesce(ctx context.Context) error {
	c.mu.Lock()
	calls := maps.Clone(c.calls)
	for _, call := range calls {
		call.quiesced = true
	}
	c.mu.Unlock()
	for id := range calls {
		err := c.writer.send(ctx, &Frame{ID: id, Method: methodCancel, Token: c.o.Token}, nil, nil)
		if err != nil {
			c.failWrite(err)
			return err
		}
	}
	for _, call := range calls {
		select {
		case <-call.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fail is end for whoever has nobody to tell that the stream does not close.
func (c *Client) fail(reason error) {
	if err := c.end(reason); err != nil {
		c.o.Log.Debug("closing a connection that failed", "reason", reason, "error", err)
	}
}

// end ends the connection; only the first reason counts.
func (c *Client) end(reason error) error {
	if !c.conclude(reason) {
		return nil
	}
	return c.rw.Close()
}

// conclude ends every call with the reason, unless there was one before.
func (c *Client) conclude(reason error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return false
	}
	c.err = reason
	close(c.done)
	for _, call := range c.calls {
		c.settle(call, unknown(reason))
	}
	clear(c.calls)
	c.turn.rest.Stop()
	wake(c.turn.own)
	return true
}

// settle ends a call without a reply, or the body of one that has its reply.
// c.mu is held.
func (c *Client) settle(call *call, err error) {
	if call.in != nil {
		call.in.abort(err)
	} else {
		call.err = err
	}
	c.finish(call)
}

// finish makes it known that a call has its reply, if it is not known. c.mu is
// held.
func (c *Client) finish(call *call) {
	if call.finished {
		return
	}
	call.finished = true
	c.turn.prompt = call.prompt
	if call.cancel != nil {
		call.cancel()
	}
	close(call.done)
}

// lost is the error of a call that could not be sent.
func lost(err error) error {
	return &tool.Error{
		Kind: tool.BackendUnavailable, Message: "the connection is lost: " + err.Error(),
		Hint: "the next call reconnects", Retryable: true, Err: err,
	}
}

// unknown is the error of a call in flight on a connection that ended.
func unknown(err error) error {
	return &tool.Error{
		Kind: tool.OutcomeUnknown, Message: "the connection was lost, and whether the request took effect is not known: " + err.Error(),
		Hint: "look before you repeat it", Err: err,
	}
}

// ended is the error of a call whose context has ended; err when it has not.
func ended(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	kind, message := tool.EndKind(ctx), "cancelled"
	if kind == tool.Timeout {
		message = "the time for it is over"
	}
	return &tool.Error{Kind: kind, Message: message, Err: errors.Join(context.Cause(ctx), err)}
}
