package session

import (
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Limits of what one request may ask for.
const (
	// MaxWait is the longest that one ReadProcess or WaitProcess waits; longer
	// ones are cut to it, and the caller asks again.
	MaxWait = 60 * time.Second
	// MaxProcessRead is the most that one ReadProcess returns, in bytes: with
	// base64 around it well below the editor's message limit.
	MaxProcessRead = 8 << 20
)

// ProcessStatus is a process's status in the editor's words.
type ProcessStatus string

// The statuses.
const (
	ProcessStarting ProcessStatus = "starting"
	ProcessRunning  ProcessStatus = "running"
	ProcessStopping ProcessStatus = "stopping"
	ProcessExited   ProcessStatus = "exited" // it ended, with an exit code or by a signal
	ProcessFailed   ProcessStatus = "failed" // it never ran, or its end is not known
	ProcessLost     ProcessStatus = "lost"   // it cannot be found any more
)

// Terminal reports whether a process in this status will never run again.
func (s ProcessStatus) Terminal() bool {
	return s == ProcessExited || s == ProcessFailed || s == ProcessLost
}

// Process is one background process of a session.
type Process struct {
	// ID is unique in the service.
	ID          string
	SessionID   string
	OperationID string
	Command     string
	Argv        []string
	CWD         string
	Status      ProcessStatus
	PID         int // 0 when there is none
	// ExitCode is nil until it is known, and for a process ended by a signal.
	ExitCode *int
	Signal   string // such as "SIGKILL"
	// Cause is how its end came, "natural_exit" or "requested_stop";
	// "" while it runs and where that is not known.
	Cause tool.EventCause
	// Reason is why a process failed or was lost, or was killed by the kernel.
	Reason     string
	TTY        *tool.TTY
	Owner      Owner
	Label      string
	StartedAt  time.Time
	EndedAt    time.Time // zero while it runs
	TotalBytes int64
	// OutputClosed says that the last output byte is in.
	OutputClosed bool
	Environment  EnvironmentRef
}

// Owner is the agent that started a process.
type Owner struct {
	Kind tool.ActorKind
	ID   string
}

// EnvironmentRef names the environment that a process runs in.
type EnvironmentRef struct {
	Profile string
	Backend string
	ID      string
}

// ProcessEventType says what happened to a process.
type ProcessEventType string

// The event types. [ProcessClosedEvent] follows the last output byte, which
// may come later than [ProcessExitedEvent].
const (
	ProcessStartedEvent ProcessEventType = "started"
	ProcessUpdatedEvent ProcessEventType = "updated"
	ProcessExitedEvent  ProcessEventType = "exited"
	ProcessClosedEvent  ProcessEventType = "closed"
	ProcessLostEvent    ProcessEventType = "lost"
)

// ProcessEvent is one change of one process.
type ProcessEvent struct {
	Type ProcessEventType
	// Cause is "natural_exit", "requested_stop" or "".
	Cause   tool.EventCause
	Process Process
}

// StartProcess asks for a background process. Exactly one of Command, a shell
// line, and Argv is set.
type StartProcess struct {
	SessionID string
	Command   string
	Argv      []string
	CWD       string // "" is the root
	// Environment adds to the session's variables.
	Environment map[string]string
	TTY         *tool.TTY
	// OperationID names the start: the same id with the same parameters gives
	// the same process, with others an error. "" makes one.
	OperationID string
	Label       string
	Actor       tool.Actor
	Mode        tool.Mode
	// CallID, RunID and NodeName are as in [CallRequest].
	CallID   string
	RunID    string
	NodeName string
	Confirm  Confirm // as in [CallRequest]
}

// ReadProcess says which output to read. With Offset it reads forward from
// there; without, the last TailBytes (0: as many as MaxBytes).
type ReadProcess struct {
	Offset    *int64
	TailBytes int64
	// MaxBytes is at most how many bytes to return; 0 means 32768, and at most
	// [MaxProcessRead].
	MaxBytes int64
	// Wait is how long to wait for output at or after Offset, at most [MaxWait].
	Wait time.Duration
	// Buffer is as in [tool.ReadOptions].
	Buffer func(size int) []byte
}

// ProcessOutput is a piece of a process's output: exact bytes.
type ProcessOutput struct {
	Data        []byte
	StartOffset int64
	EndOffset   int64
	TotalBytes  int64
	// Truncated says that output before StartOffset was asked for and is no
	// longer kept.
	Truncated bool
	// TimedOut says that Wait passed without output.
	TimedOut bool
	// EOF says that EndOffset is the end of the output and no more will come.
	EOF     bool
	Process Process
}
