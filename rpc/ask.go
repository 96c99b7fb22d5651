package rpc

import (
	"bytes"
	"context"
	"errors"
	"sync"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// asks are the requests that the service has made of the client and that have no
// answer yet.
type asks struct {
	mu      sync.Mutex
	last    int64
	waiting map[jsonrpc2.ID]chan reply
}

// reply is the client's answer.
type reply struct {
	result []byte
	err    error
}

func (a *asks) init() { a.waiting = map[jsonrpc2.ID]chan reply{} }

// answered takes an answer, on the reading goroutine. One that nobody waits for
// is ignored: it came after the request was given up.
func (a *asks) answered(m *jsonrpc2.Response) {
	a.mu.Lock()
	waiter := a.waiting[m.ID()]
	delete(a.waiting, m.ID())
	a.mu.Unlock()
	if waiter != nil {
		waiter <- reply{bytes.Clone(m.Result()), m.Err()} // it has room for the one
	}
}

func (a *asks) add() (jsonrpc2.ID, chan reply) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	id, waiter := jsonrpc2.NewNumberID(a.last), make(chan reply, 1)
	a.waiting[id] = waiter
	return id, waiter
}

func (a *asks) forget(id jsonrpc2.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.waiting, id)
}

// ask makes a request of the client for r and waits for the answer, which it
// decodes into result. Meanwhile r holds no slot. When ctx ends it tells the
// client that nobody waits any more, and does not wait for what the client makes
// of that.
func (r *request) ask(ctx context.Context, method string, params, result any) error {
	raw, err := codec{}.Marshal(params)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	id, waiter := r.asks.add()
	defer r.asks.forget(id)
	if _, err := r.stream.Write(ctx, jsonrpc2.NewCall(id, method, raw)); err != nil {
		return tool.Errorf(tool.Cancelled, "%s: the connection has ended: %w", method, err)
	}
	r.idle()
	defer r.busy()
	select {
	case got := <-waiter:
		if got.err != nil {
			return clientError(method, got.err)
		}
		if err := (codec{}).Unmarshal(got.result, result); err != nil {
			return tool.Errorf(tool.ProtocolMismatch, "the client's answer to %s cannot be understood: %w", method, err)
		}
		return nil
	case <-ctx.Done():
		number, _ := id.Number()
		r.notify(protocol.MethodCancel, map[string]int64{"id": number})
		return ctx.Err()
	}
}

// clientError is the error answer of the client.
func clientError(method string, err error) error {
	kind, message := tool.Internal, err.Error()
	if e, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		message = e.Message
		switch protocol.Code(e.Code) {
		case protocol.CodeMethodNotFound:
			kind = tool.Unsupported
		case protocol.CodeCancelled:
			kind = tool.Cancelled
		case protocol.CodeOverloaded:
			kind = tool.Overloaded
		}
	}
	return tool.Errorf(kind, "the client failed at %s: %s", method, message)
}

// idle gives up the request's slot while it waits for the client; busy takes it
// back. The slot is taken without asking: for a moment more requests may be worked
// on than there are slots for, and none waits for one.
func (r *request) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked++; r.asked == 1 && r.method.class != slotless {
		r.working--
		r.waiting++
	}
}

func (r *request) busy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked--; r.asked == 0 && r.method.class != slotless {
		r.working++
		r.waiting--
	}
}
