package rpc

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// method is how one request is answered.
type method struct {
	handle handler
	// class says what the request counts against.
	class class
}

// handler works on one request. A result that is a [jsonrpc2.RawMessage] is
// sent as it is.
type handler func(ctx context.Context, r *request, params []byte) (any, error)

// class is what a request counts against.
type class int

const (
	// slotted requests hold one of the maxRequests slots.
	slotted class = iota
	// slotless requests wait for something to happen elsewhere, or must get
	// through when all slots are taken; they count against maxWaits.
	slotless
	// lifecycle requests are never refused for load.
	lifecycle
)

// request is one request that is being worked on.
type request struct {
	*server
	id     jsonrpc2.ID
	name   string
	method method
	begun  time.Time
	// sessionID is the session that the request names, for its error.
	sessionID string
	// params are the parameters as they were written.
	params []byte

	ctx    context.Context
	cancel context.CancelCauseFunc
	// unanswered is the library's own context of the request, which ends when
	// the answer has been written.
	unanswered context.Context
}

// errCancelled is the cause that cancels a request that its client cancelled.
var errCancelled = errors.New("the request was cancelled")

// methods is the table of all requests, by name.
func methods() map[string]method {
	all := map[string]method{
		protocol.MethodInitialize: {bind((*request).initialize), lifecycle},
		protocol.MethodShutdown:   {bind((*request).shutdown), lifecycle},
	}
	for _, area := range []map[string]method{
		profileMethods(), sessionMethods(), toolMethods(), fileMethods(),
		processMethods(), artifactMethods(), laterMethods(),
	} {
		for name, m := range area {
			all[name] = m
		}
	}
	return all
}

// laterMethods are those that the protocol has and this build has not; the
// capabilities say so.
func laterMethods() map[string]method {
	later := func(context.Context, *request, []byte) (any, error) {
		return nil, tool.Errorf(tool.Unsupported, "this build of the service does not have this method yet").
			WithHint("check the capability that names it in the answer to initialize")
	}
	return map[string]method{
		protocol.MethodToolOffer: {later, slotless},
		protocol.MethodJobRun:    {later, slotless},
		protocol.MethodCodeRun:   {later, slotless},
	}
}

// handle is the connection's handler. Up to Async it runs on the reading
// goroutine, so that nothing before may block.
func (s *server) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if !req.IsCall() {
		s.notified(req.Method(), req.Params())
		return nil, nil // an error would close the connection
	}
	s.answers.owe(ctx)
	r, err := s.admit(req)
	if err != nil {
		return nil, err
	}
	if r.name != protocol.MethodInitialize {
		jsonrpc2.Async(ctx)
		r.unanswered = ctx
	}
	// What a client sends behind initialize without waiting for its answer is
	// read when that is done, rather than refused.
	return r.run(req.Params())
}

// admit registers a request, or says why it is not taken: the wrong time, no
// such method, or too many at once.
func (s *server) admit(req *jsonrpc2.Request) (*request, error) {
	// The request's own text is gone when reading goes on.
	name := strings.Clone(req.Method())
	m, known := s.methods[name]
	_, backlog := s.stream.Backlog()

	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.inPhase(name); err != nil {
		return nil, err
	}
	if !known {
		return nil, protocolError(protocol.CodeMethodNotFound, "there is no method %q", name)
	}
	if s.requests[req.ID()] != nil {
		return nil, protocolError(protocol.CodeInvalidRequest, "another request with this id is not answered yet")
	}
	switch m.class {
	case slotted:
		if s.working >= maxRequests || backlog > maxBacklog {
			return nil, overloaded("%d requests are being worked on", s.working)
		}
		s.working++
	case slotless:
		if s.waiting >= maxWaits || backlog > maxBacklog {
			return nil, overloaded("%d requests are waiting", s.waiting)
		}
		s.waiting++
	}
	switch name {
	case protocol.MethodInitialize:
		s.phase = initializing
	case protocol.MethodShutdown:
		s.phase = shutDown
	}
	r := &request{server: s, id: req.ID(), name: name, method: m, begun: time.Now()}
	// Not from the library's context of the request, which is used again for
	// another one when the handler has returned.
	r.ctx, r.cancel = context.WithCancelCause(s.ctx)
	s.requests[r.id] = r
	s.work.Add(1)
	return r, nil
}

// inPhase says why a request of this method is not for now; nil when it is.
func (s *server) inPhase(name string) error {
	switch {
	case s.phase == shutDown || s.phase == ended:
		return protocolError(protocol.CodeInvalidRequest, "the service is shut down: only exit may follow")
	case name == protocol.MethodInitialize && s.phase != fresh:
		return protocolError(protocol.CodeInvalidRequest, "the service is initialized already")
	case name != protocol.MethodInitialize && s.phase != running:
		return protocolError(protocol.CodeNotInitialized, "the service is not initialized: initialize must come first")
	}
	return nil
}

func overloaded(format string, args ...any) error {
	err := tool.Errorf(tool.Overloaded, "the service is overloaded: "+format, args...).
		WithHint("wait for an answer, then try again")
	err.Retryable = true
	return wireError(err, nil)
}

// outcome is what became of a request.
type outcome struct {
	result any
	err    error
}

// run works on the request and returns its one answer. A cancelled request is
// answered when its work has really stopped; if that takes longer than the
// grace, the work is left to itself and its outcome is unknown.
func (r *request) run(params []byte) (any, error) {
	done := make(chan outcome, 1)
	go func() {
		defer r.release()
		result, err := r.safely(params)
		done <- outcome{result, err}
	}()
	var out outcome
	select {
	case out = <-done:
	case <-r.ctx.Done():
		grace := time.NewTimer(r.grace)
		defer grace.Stop()
		select {
		case out = <-done:
		case <-grace.C:
			out.err = tool.Errorf(tool.OutcomeUnknown, "%s was cancelled and did not stop within %v", r.name, r.grace).
				WithHint("look at what it was to change before trying again")
		}
	}
	r.forget(out.err)
	r.traceAnswer(out.err)
	if out.err != nil {
		return nil, r.answerError(out.err)
	}
	return out.result, nil
}

// safely calls the handler and turns a panic into an answer: one request's
// fault must not take the others down.
func (r *request) safely(params []byte) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("a request failed by a fault of the service", "method", r.name, "panic", p, "stack", string(debug.Stack()))
			result, err = nil, tool.Errorf(tool.Internal, "%s failed by a fault of the service: %v", r.name, p).
				WithHint("the service's log has the details")
		}
	}()
	return r.method.handle(r.ctx, r, params)
}

// forget takes the request from the table, so that its id can be used again
// from the moment that its answer can be read. An initialize that failed may
// be tried again.
func (r *request) forget(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.requests, r.id)
	if err != nil && r.name == protocol.MethodInitialize && r.phase == initializing {
		r.phase = fresh
	}
}

// release gives up what the request held; its work has ended.
func (r *request) release() {
	r.cancel(nil)
	r.mu.Lock()
	switch r.method.class {
	case slotted:
		r.working--
	case slotless:
		r.waiting--
	}
	r.mu.Unlock()
	r.work.Done()
}

// cancelRequest cancels the request of this id, if it is not answered yet.
func (s *server) cancelRequest(id jsonrpc2.ID) {
	s.mu.Lock()
	r := s.requests[id]
	s.mu.Unlock()
	if r != nil {
		r.cancel(errCancelled)
	}
}

// answerError makes the error answer of the request.
func (r *request) answerError(err error) error {
	cause := context.Cause(r.ctx)
	stopped := errors.Is(err, context.Canceled) || tool.KindOf(err) == tool.Cancelled
	switch {
	case stopped && errors.Is(cause, errCancelled):
		return wireError(tool.Errorf(tool.Cancelled, "%s was cancelled", r.name), r)
	case stopped && errors.Is(cause, errEnding):
		return wireError(tool.Errorf(tool.Cancelled, "%s was stopped: %w", r.name, errEnding), r)
	}
	return wireError(err, r)
}

// bind makes a handler of a typed function.
func bind[P, R any](f func(*request, context.Context, *P) (R, error)) handler {
	decode := paramsDecoder[P]()
	return func(ctx context.Context, r *request, raw []byte) (any, error) {
		params, session, err := decode(raw)
		r.sessionID, r.params = session, raw
		if err != nil {
			return nil, err
		}
		return f(r, ctx, params)
	}
}

// notified handles a notification, on the reading goroutine. Unknown ones are
// ignored, as are those that make no sense.
func (s *server) notified(name string, params []byte) {
	var err error
	switch name {
	case protocol.MethodExit:
		s.exit()
	case protocol.MethodCancel:
		err = s.notifyCancel(params)
	case protocol.MethodSetTrace:
		err = s.setTrace(params)
	}
	if err != nil {
		s.log.Warn(fmt.Sprintf("the notification %s was ignored: %v", name, err))
	}
}
