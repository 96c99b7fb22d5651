package protocol

import "time"

// Process is one background process of a session.
type Process struct {
	// ID is made by the service and unique in it.
	ID          string        `json:"id"`
	SessionID   string        `json:"sessionId"`
	OperationID string        `json:"operationId,omitzero"`
	Command     string        `json:"command"`
	Argv        []string      `json:"argv,omitempty"`
	CWD         string        `json:"cwd"`
	Status      ProcessStatus `json:"status"`
	PID         int           `json:"pid,omitzero"`
	// ExitCode is missing until it is known, and for a process that a signal ended.
	ExitCode *int `json:"exitCode,omitzero"`
	// Signal is the signal that ended it, such as "SIGKILL".
	Signal string `json:"signal,omitzero"`
	// Cause is "natural_exit" or "requested_stop" of a process that has ended,
	// where it is known.
	Cause string `json:"cause,omitzero"`
	// Reason is why it failed or was lost, or was killed for want of memory.
	Reason string `json:"reason,omitzero"`
	TTY    *TTY   `json:"tty,omitzero"`
	Owner  Owner  `json:"owner"`
	Label  string `json:"label,omitzero"`

	StartedAt time.Time `json:"startedAt"`
	EndedAt   time.Time `json:"endedAt,omitzero"`
	// TotalBytes counts all output ever written.
	TotalBytes int64 `json:"totalBytes"`
	// OutputClosed says that the last output byte is in.
	OutputClosed bool               `json:"outputClosed"`
	Environment  ProcessEnvironment `json:"environment"`
}

// ProcessStatus is where a process is in its life.
type ProcessStatus string

// The statuses of a process.
const (
	ProcessStarting ProcessStatus = "starting"
	ProcessRunning  ProcessStatus = "running"
	ProcessStopping ProcessStatus = "stopping"
	ProcessExited   ProcessStatus = "exited" // with an exit code or by a signal
	ProcessFailed   ProcessStatus = "failed" // it never ran, or its end is not known
	ProcessLost     ProcessStatus = "lost"   // it cannot be found any more
)

// Values are all statuses.
func (ProcessStatus) Values() []ProcessStatus {
	return []ProcessStatus{ProcessStarting, ProcessRunning, ProcessStopping, ProcessExited, ProcessFailed, ProcessLost}
}

// TTY is the size of a terminal in character cells.
type TTY struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// Owner is the agent that started a process.
type Owner struct {
	Kind ActorKind `json:"kind"`
	ID   string    `json:"id"`
}

// ProcessEnvironment names where a process runs.
type ProcessEnvironment struct {
	Profile string `json:"profile"`
	Backend string `json:"backend"`
	ID      string `json:"id"`
}

// ProcessStartParams asks for a background process. Exactly one of Command, a
// shell line, and Argv stands. The same OperationID with the same parameters
// gives the same process, with others an error.
type ProcessStartParams struct {
	SessionID string   `json:"sessionId"`
	Command   string   `json:"command,omitzero"`
	Argv      []string `json:"argv,omitempty"`
	// CWD is a directory of the environment; missing is the root.
	CWD string `json:"cwd,omitzero"`
	// Env adds to the session's variables.
	Env map[string]string `json:"env,omitempty"`
	// TTY gives the process a terminal of this size.
	TTY            *TTY           `json:"tty,omitzero"`
	OperationID    string         `json:"operationId,omitzero"`
	Label          string         `json:"label,omitzero"`
	Actor          *Actor         `json:"actor,omitzero"`
	PermissionMode PermissionMode `json:"permissionMode,omitzero"`
	// CallID, RunID and NodeName are those of the start's events.
	CallID   string `json:"callId,omitzero"`
	RunID    string `json:"runId,omitzero"`
	NodeName string `json:"nodeName,omitzero"`
}

// ProcessParams names a process.
type ProcessParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
}

// ProcessResult carries one process.
type ProcessResult struct {
	Process Process `json:"process"`
}

// ProcessListResult is the answer to process/list, oldest first.
type ProcessListResult struct {
	Processes []Process `json:"processes"`
}

// Encoding is how bytes stand in a string.
type Encoding string

// The encodings. Base64 is exact; in utf8 a page ends on a character boundary
// and invalid bytes come as U+FFFD.
const (
	EncodingUTF8   Encoding = "utf8"
	EncodingBase64 Encoding = "base64"
)

// Values are all encodings.
func (Encoding) Values() []Encoding { return []Encoding{EncodingUTF8, EncodingBase64} }

// ProcessSignalParams sends a signal to a process group.
type ProcessSignalParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	// Signal is a name such as "SIGINT", or a key of its terminal such as "^C".
	Signal string `json:"signal"`
}

// ProcessWriteParams writes to a process's standard input or terminal.
type ProcessWriteParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	Data      string `json:"data"`
	// Encoding is utf8 when missing.
	Encoding Encoding `json:"encoding,omitzero"`
}

// ProcessResizeParams sets the size of a process's terminal.
type ProcessResizeParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	Cols      uint16 `json:"cols"`
	Rows      uint16 `json:"rows"`
}

// ProcessReadParams says which output to read: forward from Offset, or without
// it the last TailBytes (missing: as many as MaxBytes).
type ProcessReadParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	Offset    *int64 `json:"offset,omitzero"`
	TailBytes int64  `json:"tailBytes,omitzero"`
	// MaxBytes is 32768 when missing, and at most 8 MiB.
	MaxBytes int64 `json:"maxBytes,omitzero"`
	// WaitMs is how long to wait for output at Offset, at most 60 000.
	WaitMs int64 `json:"waitMs,omitzero"`
	// Encoding is utf8 when missing.
	Encoding Encoding `json:"encoding,omitzero"`
}

// ProcessReadResult is a piece of a process's output.
type ProcessReadResult struct {
	Data     string   `json:"data"`
	Encoding Encoding `json:"encoding"`
	// Lossy says that invalid bytes came as U+FFFD.
	Lossy bool `json:"lossy,omitzero"`
	// StartOffset and EndOffset bound the piece, as offsets into all output
	// ever written; the next read continues at EndOffset.
	StartOffset int64 `json:"startOffset"`
	EndOffset   int64 `json:"endOffset"`
	TotalBytes  int64 `json:"totalBytes"`
	// Truncated says that output before StartOffset was asked for and is no
	// longer kept.
	Truncated bool `json:"truncated"`
	// TimedOut says that WaitMs passed without output.
	TimedOut bool `json:"timedOut"`
	// EOF says that EndOffset is the end and no more will come.
	EOF     bool    `json:"eof"`
	Process Process `json:"process"`
}

// ProcessWaitParams waits for a process to end.
type ProcessWaitParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	// TimeoutMs is at most 60 000, which it is when missing; 0 does not wait.
	TimeoutMs *int64 `json:"timeoutMs,omitzero"`
}

// ProcessWaitResult is the answer to process/wait.
type ProcessWaitResult struct {
	Process Process `json:"process"`
	// TimedOut says that it still runs.
	TimedOut bool `json:"timedOut"`
}

// ProcessEventParams is one change of one process.
type ProcessEventParams struct {
	Type ProcessEventType `json:"type"`
	// Cause is "natural_exit" or "requested_stop", where it is known.
	Cause   string  `json:"cause,omitzero"`
	Process Process `json:"process"`
}

// ProcessEventType says what happened to a process.
type ProcessEventType string

// The types of process events. Closed follows the last output byte, which may
// come later than exited.
const (
	ProcessEventStarted ProcessEventType = "started"
	ProcessEventUpdated ProcessEventType = "updated"
	ProcessEventExited  ProcessEventType = "exited"
	ProcessEventClosed  ProcessEventType = "closed"
	ProcessEventLost    ProcessEventType = "lost"
)

// Values are all types of process events.
func (ProcessEventType) Values() []ProcessEventType {
	return []ProcessEventType{ProcessEventStarted, ProcessEventUpdated, ProcessEventExited, ProcessEventClosed, ProcessEventLost}
}

// ProcessSubscribeParams asks for a process's output as process/output. One
// connection has at most one subscription to a process; another request
// replaces it.
type ProcessSubscribeParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	// FromOffset is where to begin; missing is where the output ends now.
	FromOffset *int64 `json:"fromOffset,omitzero"`
}

// ProcessSubscribeResult is the answer to process/subscribe.
type ProcessSubscribeResult struct {
	// Offset is where the first process/output begins, unless a gap comes first.
	Offset  int64   `json:"offset"`
	Process Process `json:"process"`
}

// ProcessOutputParams is a piece of a subscribed process's output, or a gap.
// Each begins where the last one ended, the first where the answer to
// process/subscribe says, which comes before it.
type ProcessOutputParams struct {
	SessionID string `json:"sessionId"`
	ProcessID string `json:"processId"`
	Offset    int64  `json:"offset"`
	Data      []byte `json:"data,omitempty"`
	// Gap says that the output from Offset up to NextOffset is left out; what
	// is still kept of it can be had with process/read.
	Gap        bool  `json:"gap,omitzero"`
	NextOffset int64 `json:"nextOffset,omitzero"`
	// EOF says that the output ended here and the subscription with it.
	EOF bool `json:"eof,omitzero"`
	// Error is why the subscription ended early.
	Error *SessionError `json:"error,omitzero"`
}
