// Package backends says what a kind of execution environment must be able to
// do, and keeps the registry of the kinds that this build has.
//
// Nothing here knows a particular kind: each lives in a folder of its own.
package backends

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Backend makes, finds and removes environments of one kind. Its methods may
// be called concurrently.
type Backend interface {
	// Kind is the backend's name in a profile, such as "docker".
	Kind() string
	// Check really tries the profile and reports each step.
	Check(ctx context.Context, p profile.Profile) Health
	// Open creates the environment, or reattaches to it when b is marked
	// provisioned: what was created and is gone is [tool.EnvironmentLost],
	// never an empty replacement. A failed creation leaves nothing behind; the
	// error of one that was not even begun is marked by [NothingMade].
	Open(ctx context.Context, b Binding, p Progress) (Environment, error)
	// Remove removes the environment and what it holds without opening it.
	// Removing what is gone already is no error.
	Remove(ctx context.Context, b Binding) error
	// Prune removes, or with DryRun only lists, resources whose owner is
	// proven gone.
	Prune(ctx context.Context, o PruneOptions) ([]Resource, error)
}

// Prober is a Backend that can say, without a profile, why its kind cannot be
// used on this machine now; nil means that it can. It answers within 3 s. A
// backend that is no Prober counts as usable.
type Prober interface {
	Probe(ctx context.Context) error
}

// Locator is a Backend whose environments may be on another machine, so that a
// folder of the host that a profile names is one of that machine.
type Locator interface {
	// Machine names the machine that the profile's folders are on; "" is this one.
	// It reaches none.
	Machine(p profile.Profile) (string, error)
}

// Environment is one live, bound place where tools run. Its methods may be
// called concurrently.
type Environment interface {
	Info() Info
	// Tools describes what this environment offers.
	Tools(ctx context.Context) ([]tool.Description, error)
	// Call runs one tool. A call whose outcome is not known fails with
	// [tool.OutcomeUnknown] and is never repeated.
	Call(ctx context.Context, r tool.Request) (tool.Result, error)
	Processes() Processes
	Events() Events
	// Export streams a snapshot that present_artifact made; the token is used
	// up by Close.
	Export(ctx context.Context, token string) (io.ReadCloser, error)
	// Detach lets go of the environment, which lives on until its idle limit,
	// or for good when the profile says so. It ends every call in flight.
	Detach(ctx context.Context) error
	// Shutdown ends this session's part of the environment in order: its
	// processes are stopped and reaped and its worker exits. Files stay. The
	// error says what could not be stopped; then nothing may be removed. Where
	// somebody has stopped the environment nothing is left to end, and it is not
	// started for that.
	Shutdown(ctx context.Context) error
}

// Forgetter is an Environment that outlives its sessions where it is shared, and keeps
// things of each: records and output of processes, temporary files, snapshots.
type Forgetter interface {
	// Forget is Shutdown, and then removes what is kept of this session, and nothing
	// of another one's. The error may say that something of it could not be
	// removed. It may take [ForgetTime] longer. What somebody has stopped is not
	// started for that, and keeps it: [ErrStopped].
	Forget(ctx context.Context) error
}

// ForgetTime is how long a Forgetter may take beyond a shutdown: temporary files may
// be very many.
const ForgetTime = 30 * time.Second

// Processes are the background processes of one session in one environment.
type Processes interface {
	Start(ctx context.Context, r tool.StartRequest) (tool.Process, error)
	List(ctx context.Context) ([]tool.Process, error)
	Get(ctx context.Context, id string) (tool.Process, error)
	Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error)
	Write(ctx context.Context, id string, data []byte) (tool.Process, error)
	CloseStdin(ctx context.Context, id string) (tool.Process, error)
	Resize(ctx context.Context, id string, size tool.TTY) (tool.Process, error)
	// Signal sends a signal by name ("SIGINT") to the process group.
	Signal(ctx context.Context, id, signal string) (tool.Process, error)
	// Stop sends SIGTERM to the group, after 2 s SIGKILL.
	Stop(ctx context.Context, id string) (tool.Process, error)
}

// FileSystem is what an environment offers to people who look into it. An
// Environment that has it implements it.
type FileSystem interface {
	Stat(ctx context.Context, path string) (FileInfo, error)
	ReadDirectory(ctx context.Context, path string) ([]FileInfo, error)
	// ReadFile returns at most length bytes from offset on; length < 0 means
	// all, at most [MaxFileRead].
	ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error)
	// WriteFile replaces the file atomically, keeping its mode.
	WriteFile(ctx context.Context, path string, data []byte) (FileInfo, error)
}

// MaxFileRead is the most that one FileSystem.ReadFile returns, and the most
// that one WriteFile or write_file takes, in bytes.
const MaxFileRead = tool.MaxFileBytes

// FileInfo describes one entry.
type FileInfo = tool.FileInfo

// Events carries process events and changes of state to any number of
// subscribers. A subscriber that falls behind by more than its bound is ended
// with an error from Next, never slows the environment and never misses an
// event silently.
type Events interface {
	Subscribe() Subscription
}

// Subscription is one subscriber's queue.
type Subscription interface {
	// Next waits for the next event. It fails when ctx ends, when the
	// environment is detached and what was queued before has been delivered, or,
	// with [tool.Overloaded], when the subscriber fell behind.
	Next(ctx context.Context) (Event, error)
	Close()
}

// Event is one of its members.
type Event struct {
	Process *tool.ProcessEvent
	State   *StateChange
}

// State is whether an environment can be used.
type State string

// The states.
const (
	StateConnecting   State = "connecting"
	StateReady        State = "ready"
	StateDisconnected State = "disconnected" // the next call reconnects
	StateFailed       State = "failed"       // it will not come back
)

// StateChange tells that the environment's state has changed.
type StateChange struct {
	State State
	Err   error // why, for StateDisconnected and StateFailed
}

// Info describes a live environment.
type Info struct {
	Backend     string
	Environment string // the identity
	Root        string // the workspace as paths in the environment see it
	// Capabilities are what the far end announced.
	Capabilities []string
}

// Binding is everything that decides which environment a session has. It is
// saved before anything is created and never changes afterwards.
type Binding struct {
	// Session is the session's id, one path component.
	Session string
	// Environment is the identity: "caisson-" and 32 hex digits.
	Environment string
	// Profile is the whole profile as it was when the session was opened.
	Profile profile.Profile
	// WorkspaceFolder is the opened folder on the host, "" for none.
	WorkspaceFolder string
	// Provisioned says that the environment was created, so that its absence
	// is a loss.
	Provisioned bool
	// OnlyRunning has Open not start an environment that somebody has stopped, or a
	// restart of its machine: that is [ErrStopped]. It is opened to be ended.
	OnlyRunning bool
	// StateDir is a directory of the environment's own on the host, private to
	// the user; RuntimeDir a short one for sockets.
	StateDir   string
	RuntimeDir string
	// Packs are the tool packs of the session in this environment. Opening it
	// lists the tools of each; one that cannot be listed fails it.
	Packs []tool.Pack
	// Store identifies the state store that owns the environment, for labels.
	Store string
	// Secrets are never saved.
	Secrets Secrets
}

// ErrStopped is in the error of an environment that was to be opened only if it runs,
// and does not: nothing runs in it.
var ErrStopped = errors.New("stopped")

// Secrets travel over the worker's connection only: never argv, logs, labels
// or errors.
type Secrets struct {
	// Token authenticates the session's connection: 64 hex digits.
	Token string
	// Environment holds the variables of the profile's env, forward_env and
	// allow lists. Nil when they could not be taken again on a reconnect, which
	// means "as first given".
	Environment map[string]string
}

// String keeps secrets out of logs and formatted errors.
func (Secrets) String() string { return "[secret]" }

// GoString is String for %#v.
func (Secrets) GoString() string { return "backends.Secrets{[secret]}" }

// MarshalJSON writes null: secrets are not saved.
func (Secrets) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Progress is told what Open is doing, in words for a person. It may be called
// from any goroutine and must not block. Nil is allowed.
type Progress func(step string)

// Report calls p unless it is nil.
func (p Progress) Report(step string) {
	if p != nil {
		p(step)
	}
}

// Health is what Check found.
type Health struct {
	OK       bool          `json:"ok"`
	Checks   []Check       `json:"checks"`
	Duration time.Duration `json:"-"`
}

// Check is one thing that was tried.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
}

// NewCheck is what was found out about something: detail, or the error, with its hint.
func NewCheck(name string, err error, detail string) Check {
	if err == nil {
		return Check{Name: name, OK: true, Detail: detail}
	}
	return Check{Name: name, Detail: err.Error(), Hint: tool.HintOf(err)}
}

// Add notes one more check, and returns whether it is good. Health is OK when all are.
func (h *Health) Add(c Check) bool {
	h.OK = c.OK && (h.OK || len(h.Checks) == 0)
	h.Checks = append(h.Checks, c)
	return c.OK
}

// PruneOptions bounds what Prune looks at.
type PruneOptions struct {
	DryRun    bool
	OlderThan time.Duration
	// Store and Live name the state store and the environments that it still
	// knows.
	Store string
	Live  map[string]bool
	// Profiles name the machines to look at, for backends that reach several:
	// those of the configuration and of the saved sessions.
	Profiles []profile.Profile
	// Bound are the bindings of all the store's sessions, on any backend, without
	// secrets: they say where to look for what environments keep on this machine. A
	// binding's StateDir need not exist.
	Bound []Binding
	// Unreached is told of each place that could not be looked at, which is no
	// failure of the others. Nil is allowed.
	Unreached func(place string, err error)
}

// Skip tells o.Unreached, if there is one.
func (o PruneOptions) Skip(place string, err error) {
	if o.Unreached != nil {
		o.Unreached(place, err)
	}
}

// Resource is something that a backend made.
type Resource struct {
	Backend     string    `json:"backend"`
	Kind        string    `json:"kind"` // container, volume, directory, ...
	ID          string    `json:"id"`
	Environment string    `json:"environment,omitempty"`
	Session     string    `json:"session,omitempty"`
	CreatedAt   time.Time `json:"createdAt"`
	Reason      string    `json:"reason"`
}
