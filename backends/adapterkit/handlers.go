package adapterkit

import (
	"context"
	"encoding/json"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Handlers are what an adapter can do, one function each. Initialize and Execute
// are required; a method without a function is unknown to the host. Functions are
// called concurrently; the context of each ends with its request.
type Handlers struct {
	// Initialize makes or finds the workspace that the binding names, with mode
	// 0700 when it makes it, and returns its path with symlinks resolved. A
	// missing workspace is an error when the binding requires an existing one.
	Initialize func(ctx context.Context, s *Session, in wire.Initialize) (root string, err error)
	// Execute runs one tool. Any name but those of the protocol's workspace tools
	// must be refused; so must a command that cannot be kept to its mode.
	Execute func(ctx context.Context, c Call) (tool.Result, error)
	// RunCode runs a program. A program that fails or times out is a result with
	// Error.
	RunCode func(ctx context.Context, p Program) (wire.RunCodeResult, error)
	// RunJob runs a program to its end, in a fresh directory that is gone when it
	// returns, or in the workspace: the protocol's document says how. Nothing of the
	// job runs any more then. The request was checked ([tool.JobRequest.Check]); its
	// actor and mode are never empty. Each of the result's files is an export, which
	// takes Exports. With it the kit announces caisson.job.v1 and caisson.bulk.v1.
	RunJob func(ctx context.Context, r tool.JobRequest) (tool.JobResult, error)
	// Processes are the process methods.
	Processes ProcessHandlers
	// Exports are the methods behind present_artifact.
	Exports ExportHandlers
	// Close stops and reaps what the session still has, within ctx.
	Close func(ctx context.Context) error
}

// ProcessHandlers are the process/* methods. With Start, List and Close (of
// [Handlers]) the kit announces process.start.v1; without one of them Start must
// be nil. An adapter whose files are not those that commands see has none of these.
type ProcessHandlers struct {
	// Start admits a process that outlives its request: it ends with
	// [Session.Lifetime]. The record, and that in List, carry the request's
	// operation id; the kit checks both.
	Start  func(ctx context.Context, r tool.StartRequest) (tool.Process, error)
	List   func(ctx context.Context) ([]tool.Process, error)
	Get    func(ctx context.Context, id string) (tool.Process, error)
	Read   func(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error)
	Write  func(ctx context.Context, id string, input []byte) (tool.Process, error)
	Resize func(ctx context.Context, id string, size tool.TTY) (tool.Process, error)
	Stop   func(ctx context.Context, id string) (tool.Process, error)
	// InputAvailable and CompletionPending answer yes or no.
	InputAvailable    func(ctx context.Context, id string) (bool, error)
	CompletionPending func(ctx context.Context, r wire.ProcessRequest) (bool, error)
	// The next four store what the request says and return the record.
	CompletionDelivered func(ctx context.Context, r wire.ProcessRequest) (tool.Process, error)
	CompletionMode      func(ctx context.Context, r wire.ProcessRequest) (tool.Process, error)
	Recheck             func(ctx context.Context, r wire.ProcessRequest) (tool.Process, error)
	RecheckDelivered    func(ctx context.Context, r wire.ProcessRequest) (tool.Process, error)
	// Cleanup forgets the records of processes that have ended and returns them.
	Cleanup func(ctx context.Context) ([]tool.Process, error)
}

// ExportHandlers are the export/* methods. Either both are set or none.
type ExportHandlers struct {
	// Read returns at most [wire.ExportChunk] bytes of the snapshot from offset
	// on, and whether they are its last. An empty chunk that is not the last
	// breaks the protocol. Where jobs run a snapshot may be read more than once.
	Read func(ctx context.Context, token string, offset int64) (data []byte, eof bool, err error)
	// Close lets go of the snapshot.
	Close func(ctx context.Context, token string) error
}

// Call is one call of a tool.
type Call struct {
	// ID names the call for people; it may be empty.
	ID   string
	Name string
	// Arguments is one JSON object.
	Arguments json.RawMessage
	// Actor is who calls: the session for its main agent.
	Actor string
	// Mode is what a command may write; never empty.
	Mode tool.Mode
}

// Program is one program to run. It must not be used once RunCode has returned.
type Program struct {
	wire.RunCode
	request *Request
}

// InvokeTool calls one of the program's tools at the host, on behalf of the
// program: see [Request.InvokeTool].
func (p Program) InvokeTool(ctx context.Context, call wire.ToolCall) (tool.Result, error) {
	return p.request.InvokeTool(ctx, call)
}

// New makes a Backend of h. It fails when a function is missing without which the
// others have no meaning.
func New(h Handlers) (Backend, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	return &handled{h}, nil
}
