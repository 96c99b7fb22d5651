package adapterkit

import (
	"context"
	"encoding/json"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Backend answers the requests of one session. [Run] calls Initialize first and
// once, then Handle for each request, concurrently, and Close last and once, after
// every handler has returned and when Initialize was called.
type Backend interface {
	// Initialize takes the binding, which never changes afterwards, and answers
	// where the workspace is and what the adapter can do. Its version and the
	// form of its members are checked already. ctx ends when it is cancelled and
	// when the input ends; after a failure nothing else is called but Close.
	Initialize(ctx context.Context, s *Session, in wire.Initialize) (wire.Initialized, error)
	// Handle answers every other request. ctx ends when the request is cancelled
	// or the connection ends; the reply is sent when Handle returns, and not
	// before. A method that it does not know is [wire.UnknownMethod]. An error
	// that is a [*tool.Error] keeps its kind where the host understands that.
	Handle(ctx context.Context, r *Request) (wire.Response, error)
	// Close stops and reaps every process that the session still has and lets go
	// of everything else, within ctx. When it fails nothing may be removed.
	Close(ctx context.Context) error
}

// Session is the one session of an adapter. Its methods may be called
// concurrently and at any time.
type Session struct {
	binding  wire.Initialize
	raw      json.RawMessage // of the binding, as it came
	lifetime context.Context
	emit     func(tool.ProcessEvent)
	// end ends the session when what is in flight has ended; abandon cuts the
	// connection first.
	end     func(error)
	abandon func()
}

// Binding is what initialize fixed. Its Environment holds the variables of
// commands, which are secret; nothing of the adapter's own belongs to them.
func (s *Session) Binding() wire.Initialize { return s.binding }

// Lifetime ends when the session does: after the last request has ended and
// before [Backend.Close] is called. It is for what outlives the request that began
// it, such as an admitted background process; everything else ends with the
// context of its request.
func (s *Session) Lifetime() context.Context { return s.lifetime }

// EmitProcess sends an event about a process. It never blocks; before initialize
// is answered it does nothing, since the host lists the processes then.
func (s *Session) EmitProcess(e tool.ProcessEvent) { s.emit(e) }

// Fail ends the session at once and makes [Run] return err: for when what the
// adapter stands for is gone. The connection is closed first, so that the outcome of
// what is in flight is unknown to the host, as it should be, and its next request
// begins anew. Only the first call counts.
func (s *Session) Fail(err error) {
	s.abandon()
	s.end(err)
}

// Request is one request of the host. It must not be used once Handle has
// returned; Data and Body may be.
type Request struct {
	// Method is such as [wire.MethodExecute].
	Method string
	// Data is valid JSON, or nil when the frame had none.
	Data json.RawMessage
	// Body is what came beside the frame, where the adapter announced
	// [wire.CapBulk]; else nil.
	Body []byte

	session *Session
	wire    *wire.Request
	live    live
}

// Decode decodes Data into v, strictly for its types and leniently for unknown
// members. Its error is [tool.InvalidParams].
func (r *Request) Decode(v any) error { return r.wire.Decode(v) }

// Execute is the data of execute and, apart from it, the call's arguments: one
// JSON object. Call.Arguments is left empty.
func (r *Request) Execute() (wire.Execute, json.RawMessage, error) { return r.wire.Execute() }

// Session is the session that the request belongs to.
func (r *Request) Session() *Session { return r.session }

// HostHas reports whether the host announced the capability at initialize.
func (r *Request) HostHas(capability string) bool { return r.wire.HostHas(capability) }

// InvokeTool calls a tool of the host for a program that runs. It fails when the
// request is no run_code, when it is over, when it or ctx is cancelled, and when
// the host refuses the call.
func (r *Request) InvokeTool(ctx context.Context, call wire.ToolCall) (tool.Result, error) {
	return r.invoke(ctx, call)
}
