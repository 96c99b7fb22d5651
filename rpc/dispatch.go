package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends/pace"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// method is how one request is answered.
type method struct {
	handle handler
	// class says what the request counts against.
	class class
	name  string
}

// handler decodes the parameters of one request and returns what works on it.
type handler func(r *request, params []byte) (work, error)

// work is what is done for one request. A result that is a
// [jsonrpc2.RawMessage] is sent as it is.
type work func(ctx context.Context) (any, error)

// class is what a request counts against.
type class int

const (
	// slotted requests hold one of the maxRequests slots.
	slotted class = iota
	// slotless requests wait for something to happen elsewhere, or must get
	// through when all slots are taken; they count against maxWaits.
	slotless
	// asking requests hold a slot but while they wait for the client, and have a
	// goroutine of their own from the beginning.
	asking
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
	// sessionID and tool are what the request names, for its error and its pace.
	sessionID string
	tool      string
	// kind knows how soon those like it are over.
	kind *pace.Kind
	// params are the parameters as they were written.
	params []byte
	// scratch is where the answer is encoded, nil for elsewhere.
	scratch *[]byte

	ctx    context.Context
	cancel context.CancelCauseFunc
	// answered, unless it is nil, is closed when the answer is on its way.
	answered chan struct{}
	// counted is how many bytes of s.room the request has.
	counted int64

	// The server's mu guards these.
	settled bool        // it has its answer
	asked   int         // requests that it has made of the client, unanswered
	grace   *time.Timer // runs since it was cancelled
}

// errCancelled is the cause that cancels a request that its client cancelled.
var errCancelled error = tool.Errorf(tool.Cancelled, "the request was cancelled")

// methods is the table of all requests, by name.
func methods() map[string]method {
	all := map[string]method{
		protocol.MethodInitialize: {handle: bind((*request).initialize), class: lifecycle},
		protocol.MethodShutdown:   {handle: bind((*request).shutdown), class: lifecycle},
	}
	for _, area := range []map[string]method{
		profileMethods(), sessionMethods(), toolMethods(), fileMethods(),
		processMethods(), artifactMethods(), codeMethods(), jobMethods(),
	} {
		maps.Copy(all, area)
	}
	for name, m := range all {
		m.name = name
		all[name] = m
	}
	return all
}

// admit registers a request, or says why it is not taken: the wrong time, no
// such method, or too many at once.
func (s *server) admit(req *jsonrpc2.Call) (*request, *jsonrpc2.Error) {
	name := req.Method()
	m, known := s.methods[name]
	if known {
		name = m.name // the request's own text is gone when reading goes on
	}
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
	case slotted, asking:
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
	r.ctx, r.cancel = context.WithCancelCause(s.ctx)
	s.requests[r.id] = r
	s.work.Add(1)
	return r, nil
}

// inPhase says why a request of this method is not for now; nil when it is.
func (s *server) inPhase(name string) *jsonrpc2.Error {
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

func overloaded(format string, args ...any) *jsonrpc2.Error {
	err := tool.Errorf(tool.Overloaded, "the service is overloaded: "+format, args...).
		WithHint("wait for an answer, then try again")
	err.Retryable = true
	return wireError(err, nil)
}

// run does all of a request.
func (r *request) run(params []byte) {
	work, err := r.prepare(params)
	if err != nil {
		r.answer(nil, err)
		return
	}
	r.finish(work)
}

// prepare decodes the parameters.
func (r *request) prepare(params []byte) (w work, err error) {
	defer r.recover(&err)
	w, err = r.method.handle(r, params)
	r.kind = r.paces.Of(r.name, r.sessionID, r.tool)
	return w, err
}

// finish does the work and sends its answer.
func (r *request) finish(w work) {
	begun := time.Now()
	result, err := r.safely(w)
	r.kind.Took(time.Since(begun))
	r.answer(result, err)
}

// safely does the work and turns a panic into an answer: one request's fault
// must not take the others down.
func (r *request) safely(w work) (result any, err error) {
	defer r.recover(&err)
	return w(r.ctx)
}

func (r *request) recover(err *error) {
	p := recover()
	if p == nil {
		return
	}
	r.log.Error("a request failed by a fault of the service", "method", r.name, "panic", p, "stack", string(debug.Stack()))
	*err = tool.Errorf(tool.Internal, "%s failed by a fault of the service: %v", r.name, p).
		WithHint("the service's log has the details")
}

// answer sends the one answer of a request whose work has stopped, and gives up
// what the request held.
func (r *request) answer(result any, err error) {
	raw, err := r.encode(result, err)
	var wire error
	if err != nil {
		r.uncount(r.counted)
		raw, wire = nil, r.answerError(err)
	}
	r.cancel(nil)
	r.traceAnswer(err)
	if !r.settle(err, true) {
		// It was cancelled, and answered when that took too long.
		r.uncount(r.counted)
		r.worked()
	} else {
		var done func()
		if n := r.counted; n > 0 {
			done = func() { r.room.give(n) }
		}
		// It fails only when the connection has ended.
		_ = r.stream.Answer(r.id, raw, wire, r.worked, done)
	}
	if r.scratch != nil {
		r.scratches.Put(r.scratch)
	}
	if r.answered != nil {
		close(r.answered)
	}
}

// encode makes the JSON of a result and sees to it that it has room.
func (r *request) encode(result any, err error) (jsonrpc2.RawMessage, error) {
	if err != nil {
		return nil, err
	}
	raw, err := codec{}.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("encode the result: %w", err)
	}
	return raw, r.count(int64(len(raw)))
}

// count makes the request's share of the room for answers n bytes. It waits for
// room until the request is cancelled.
func (r *request) count(n int64) error {
	if n <= smallAnswer {
		n = 0
	}
	if n <= r.counted {
		r.uncount(r.counted - n)
		return nil
	}
	if err := r.room.take(r.ctx, n-r.counted); err != nil {
		return err
	}
	r.counted = n
	return nil
}

// expect is count for n bytes in base64, and false when there is no room now.
func (r *request) expect(n int64) bool {
	n = encodedSize(n)
	if n <= smallAnswer {
		return true
	}
	if !r.room.try(n) {
		return false
	}
	r.counted = n
	return true
}

func (r *request) uncount(n int64) {
	if n > 0 {
		r.counted -= n
		r.room.give(n)
	}
}

// settle takes the request from the table, so that its id can be used again
// from the moment that its answer can be read, and reports whether the answer
// is the caller's to send. Over says that the work has stopped: the slot is
// free. An initialize that failed may be tried again.
func (r *request) settle(err error, over bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if over {
		switch r.method.class {
		case slotted, asking:
			r.working--
		case slotless:
			r.waiting--
		}
		if r.grace != nil {
			r.grace.Stop()
		}
	}
	if r.settled {
		return false
	}
	r.settled = true
	delete(r.requests, r.id)
	if err != nil && r.name == protocol.MethodInitialize && r.phase == initializing {
		r.phase = fresh
	}
	return true
}

// stop cancels the request. It is answered when its work has really stopped; if
// that takes longer than the grace, the work is left to itself and its outcome
// is unknown. The caller holds the server's mu.
func (r *request) stop(cause error) {
	r.cancel(cause)
	if r.grace == nil {
		r.grace = time.AfterFunc(r.server.grace, r.giveUp)
	}
}

func (r *request) giveUp() {
	err := tool.Errorf(tool.OutcomeUnknown, "%s was cancelled and did not stop within %v", r.name, r.server.grace).
		WithHint("look at what it was to change before trying again")
	if r.settle(err, false) {
		// It fails only when the connection has ended.
		_ = r.stream.Respond(r.id, wireError(err, r))
	}
}

// cancelRequest cancels the request of this id, if it is not answered yet.
func (s *server) cancelRequest(id jsonrpc2.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.requests[id]; r != nil {
		r.stop(errCancelled)
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
	return func(r *request, raw []byte) (work, error) {
		params, session, err := decode(raw)
		r.sessionID, r.params = session, raw
		if err != nil {
			return nil, err
		}
		if call, ok := any(params).(*protocol.ToolCallParams); ok {
			r.tool = call.Name
		}
		return func(ctx context.Context) (any, error) { return f(r, ctx, params) }, nil
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
