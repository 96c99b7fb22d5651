package tool

import "time"

// ProcessStatus is where a background process is in its life.
type ProcessStatus string

// The statuses of wire protocol 4.
const (
	ProcessStarting ProcessStatus = "starting"
	ProcessRunning  ProcessStatus = "running"
	ProcessStopping ProcessStatus = "stopping"
	// ProcessStopped is a process whose wait returned, whatever its exit code.
	ProcessStopped ProcessStatus = "stopped"
	// ProcessFailed is a process that never ran, ended badly, or was lost.
	ProcessFailed ProcessStatus = "failed"
)

// Terminal reports whether a process in this status will never run again.
func (s ProcessStatus) Terminal() bool { return s == ProcessStopped || s == ProcessFailed }

// OwnerKind says which sort of agent started a process.
type OwnerKind string

// The kinds of owners.
const (
	OwnerMainAgent OwnerKind = "main_agent"
	OwnerSubagent  OwnerKind = "subagent"
)

// Lifecycle says what a process is tied to. Both end with their worker.
type Lifecycle string

// The lifecycles.
const (
	LifecycleSession Lifecycle = "session"
	LifecycleManaged Lifecycle = "managed"
)

// Valid reports whether l is a lifecycle, or empty for the default.
func (l Lifecycle) Valid() bool {
	return l == "" || l == LifecycleSession || l == LifecycleManaged
}

// TTY is the size of a terminal in character cells.
type TTY struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// CauseLost is the terminal cause of a record whose process cannot be found:
// its worker died, or its pid now belongs to somebody else.
const CauseLost = "lost"

// OOMKilled says whether a command, or what it had started, was ended by the kernel
// because memory was short; "" is no sign of it. The kernel tells how many processes it
// has ended for that, and not which ones.
type OOMKilled string

// How sure that is.
const (
	// OOMCertain is of a command that had the environment to itself.
	OOMCertain OOMKilled = "certain"
	// OOMProbable is of one beside which others ran: it may have been one of them.
	OOMProbable OOMKilled = "probable"
)

// Explain says it in words for a person; "" where there is nothing to say.
func (k OOMKilled) Explain() string {
	switch k {
	case "":
		return ""
	case OOMCertain:
		return "memory was used up, and the kernel killed it or what it had started"
	default:
		return "memory was used up: the kernel probably killed it or what it had started, or else something beside it"
	}
}

// Process is the durable record of one background process.
type Process struct {
	ID           string        `json:"id"`
	OperationID  string        `json:"operation_id,omitempty"`
	OwnerKind    OwnerKind     `json:"owner_kind"`
	OwnerID      string        `json:"owner_id"`
	RootThreadID string        `json:"root_thread_id"` // the session
	Lifecycle    Lifecycle     `json:"lifecycle"`
	Status       ProcessStatus `json:"status"`
	PID          int           `json:"pid"`
	PGID         int           `json:"pgid"`
	TTY          *TTY          `json:"tty,omitempty"`
	Command      string        `json:"command"`
	CWD          string        `json:"cwd"`
	StartedAt    time.Time     `json:"started_at"`
	UpdatedAt    time.Time     `json:"updated_at"`
	StoppedAt    time.Time     `json:"stopped_at"` // zero while it runs
	// ExitCode is -1 until it is known, and for a process ended by a signal.
	ExitCode       int    `json:"exit_code"`
	LastError      string `json:"last_error,omitempty"`
	SandboxMode    Mode   `json:"sandbox_mode,omitempty"`
	SandboxDenied  bool   `json:"sandbox_denied,omitempty"`
	TerminalCause  string `json:"terminal_cause,omitempty"`
	CompletionMode string `json:"completion_mode,omitempty"`
	// LogBaseOffset is the offset of the oldest output byte still kept.
	LogBaseOffset int64 `json:"log_base_offset,omitempty"`

	// The members below are Caisson's own; other peers leave them out.

	// Argv is the argument list of a process that was not started as a shell line.
	Argv []string `json:"argv,omitempty"`
	// Signal names the signal that ended the process, such as "SIGKILL".
	Signal string `json:"signal,omitempty"`
	// OOMKilled says that the kernel ended the process for want of memory.
	OOMKilled OOMKilled `json:"oom_killed,omitempty"`
	// OutputClosed says that the last output byte is in.
	OutputClosed bool `json:"output_closed,omitempty"`
	// TotalBytes counts all output bytes ever written.
	TotalBytes int64  `json:"total_bytes,omitempty"`
	Label      string `json:"label,omitempty"`
	// ActorKind tells a side chat from the subagents that it is one of for the
	// contract; empty for other owners.
	ActorKind ActorKind `json:"actor_kind,omitempty"`
}

// Owner is the actor that started the process.
func (p Process) Owner() Actor {
	switch {
	case p.OwnerKind != OwnerSubagent:
		return Actor{ID: p.OwnerID, Kind: ActorMain}
	case p.ActorKind == ActorSideChat:
		return Actor{ID: p.OwnerID, Kind: ActorSideChat}
	default:
		return Actor{ID: p.OwnerID, Kind: ActorSubagent}
	}
}

// ProcessEventType says what happened to a process.
type ProcessEventType string

// The event types of wire protocol 4. Output that is complete is an
// [EventUpdated] whose record has OutputClosed set.
const (
	EventStarted    ProcessEventType = "started"
	EventUpdated    ProcessEventType = "updated"
	EventFailed     ProcessEventType = "failed"
	EventStopped    ProcessEventType = "stopped"
	EventCleanedUp  ProcessEventType = "cleaned_up"
	EventRecheckDue ProcessEventType = "recheck_due"
)

// EventCause says why.
type EventCause string

// The causes; an event without one has none.
const (
	CauseNaturalExit   EventCause = "natural_exit"
	CauseRequestedStop EventCause = "requested_stop"
)

// ProcessEvent is one change of one process, as it stands on the wire.
type ProcessEvent struct {
	Type    ProcessEventType `json:"Type"`
	Cause   EventCause       `json:"Cause,omitempty"`
	Process Process          `json:"Process"`
}

// StartRequest asks for a background process. Exactly one of Command, a shell
// line, and Argv is set.
type StartRequest struct {
	// OperationID names the start; the same id gives the same process.
	OperationID    string            `json:"operation_id"`
	Command        string            `json:"command,omitempty"`
	Argv           []string          `json:"argv,omitempty"`
	CWD            string            `json:"cwd,omitempty"` // "" is the root
	Environment    map[string]string `json:"environment,omitempty"`
	TTY            *TTY              `json:"tty,omitempty"`
	Actor          string            `json:"actor"`
	PermissionMode Mode              `json:"permission_mode"`
	Lifecycle      Lifecycle         `json:"lifecycle,omitempty"`
	Label          string            `json:"label,omitempty"`
	// ActorKind is [ActorSideChat] for a side chat, which is always [ReadOnly];
	// else empty.
	ActorKind ActorKind `json:"actor_kind,omitempty"`
}

// ReadOptions says which output of a process to read.
type ReadOptions struct {
	// MaxBytes is at most how many bytes to return; 0 means 32768.
	MaxBytes int
	// OffsetBytes reads forward from this offset; nil reads the tail.
	OffsetBytes *int64
	// Wait is how long to wait for output at or after OffsetBytes.
	Wait time.Duration
	// MinDwell is how long to gather more once some has come.
	MinDwell time.Duration
	// Buffer, unless nil, may be asked for the room for so many bytes of output,
	// once they are there. It must not block. After an error what it returned must
	// not be used again.
	Buffer func(size int) []byte
}

// ReadResult is a piece of a process's output.
type ReadResult struct {
	Process Process
	// Output holds the exact bytes.
	Output []byte
	// StartOffset is the offset of Output's first byte; later than what was
	// asked for, with Truncated set, when the older output is no longer kept.
	StartOffset int64
	EndOffset   int64
	TotalBytes  int64
	Truncated   bool
	TimedOut    bool
	Duration    time.Duration
}
