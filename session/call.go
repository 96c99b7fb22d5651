package session

import (
	"encoding/json"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// CallRequest asks for one tool call.
type CallRequest struct {
	SessionID string
	Name      string
	// Arguments is one JSON object; empty means {}.
	Arguments json.RawMessage
	// CallID names the call in events; "" makes one.
	CallID string
	// Actor is who calls; the zero Actor is the session's main agent. A side
	// chat's mode is always read_only.
	Actor tool.Actor
	// Mode is the permission mode asked for; "" is the profile's. Above the
	// profile's ceiling it is [tool.Denied].
	Mode        tool.Mode
	Constraints Constraints
	// RunID and NodeName are passed through to the events.
	RunID    string
	NodeName string
}

// CallResult is the answer to a tool call.
type CallResult struct {
	tool.Result
	CallID   string
	Backend  string
	Profile  string
	Duration time.Duration
}

// Execution is what the events around a call tell: exactly one started and one
// terminal event for each call, denials included.
type Execution struct {
	SessionID string
	CallID    string
	RunID     string
	NodeName  string
	// Tool is the tool's name, or "process.start".
	Tool      string
	Profile   string
	Backend   string
	Actor     tool.Actor
	StartedAt time.Time
	// Duration is set in terminal events.
	Duration time.Duration
	// Err is why the call failed, in ExecutionFailed only. A result that is an
	// error for the model counts as completed.
	Err error
}
