package backends

import (
	"context"
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// CodeRunner is an Environment that runs programs which call tools. The
// interpreter reaches tools only: no files, network or processes of its own.
type CodeRunner interface {
	// RunCode runs a program to its end. A program that fails or times out is a
	// result with Error; an environment that runs no programs answers
	// [tool.Unsupported]. When ctx ends the program and the calls that it waits
	// for are cancelled.
	RunCode(ctx context.Context, r CodeRequest) (CodeResult, error)
}

// CodeRequest asks for one program.
type CodeRequest struct {
	Code string
	// Tools are those that the program may call.
	Tools []tool.Description
	// View is what the program sees when it prints or returns a tool's result;
	// empty means [ViewContent].
	View ResultView
	// Timeout is the program's own; 0 means none.
	Timeout time.Duration
	// Actor and Mode are as in [tool.Request].
	Actor tool.Actor
	Mode  tool.Mode
	// Invoke runs a tool for the program, and is called concurrently. Its context
	// ends with the program.
	Invoke func(ctx context.Context, c NestedCall) (tool.Result, error)
}

// NestedCall is one call that a program makes.
type NestedCall struct {
	Name string
	// Arguments is one JSON object.
	Arguments json.RawMessage
}

// ResultView is what a program sees of a tool's result.
type ResultView string

// The views.
const (
	ViewContent    ResultView = "content"
	ViewStructured ResultView = "structured"
)

// Valid reports whether v is a view, or empty for the default.
func (v ResultView) Valid() bool { return v == "" || v == ViewContent || v == ViewStructured }

// CodeResult is what a program came to.
type CodeResult struct {
	Logs []string
	// Value is the program's value as JSON; nil when it has none.
	Value json.RawMessage
	// Error is why the program failed; empty when it did not.
	Error string
	// Media are the parts other than text that it showed.
	Media []tool.Part
	// CallSummary is what the interpreter tells about the calls, as JSON; may be
	// nil.
	CallSummary json.RawMessage
}
