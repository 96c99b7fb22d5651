package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
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

// Options is what a Manager works with.
type Options struct {
	// StateDir holds the bindings; it is created 0700. Two services may share it.
	StateDir string
	// RuntimeDir is a short directory for sockets; it is created 0700.
	RuntimeDir string
	// Config is where the user's configuration comes from.
	Config config.Source
	// Registry holds the backends of this build; "local" must be in it.
	Registry *backends.Registry
	// Artifacts receives what sessions publish.
	Artifacts *artifacts.Store
	// Sink is told what happens; nil drops it.
	Sink Sink
	Log  *slog.Logger
	// Lookup takes a variable of this service's environment; nil is os.LookupEnv.
	Lookup func(name string) (string, bool)
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// Manager owns the sessions of one service process. Its methods may be called
// concurrently; errors are of type [tool.Error].
type Manager struct {
	o Options
}

// New makes a manager on the state directory and reads the configuration. A
// bad configuration is no error here: it fails each Open of a new session.
func New(o Options) (*Manager, error) { return &Manager{o: o}, nil }

// Open makes a session, or resumes the one of that id, and opens its
// environment unless the request defers that. The session's choice and whole
// profile are saved before anything is created. Resumed says that the session
// existed.
func (m *Manager) Open(ctx context.Context, r OpenRequest, p backends.Progress) (s Session, resumed bool, err error) {
	return Session{}, false, nil
}

// Get returns the session, whether this service has it open or not.
func (m *Manager) Get(ctx context.Context, id string) (Session, error) { return Session{}, nil }

// List returns the sessions of the state directory, newest use first, those of
// other services included. A binding that cannot be read is listed as failed.
func (m *Manager) List(ctx context.Context, f Filter) ([]Session, error) { return nil, nil }

// Close ends the session: its processes are stopped and its environment is
// removed, or kept when it is persistent or another session is bound to it.
func (m *Manager) Close(ctx context.Context, id string) (Session, error) { return Session{}, nil }

// Delete closes the session and removes its environment, persistent or not,
// unless another session is bound to it, and forgets the session. With force an
// environment that cannot be reached is forgotten too; left then says what may
// still be there.
func (m *Manager) Delete(ctx context.Context, id string, force bool) (left string, err error) {
	return "", nil
}

// Tools lists what the session's environment offers.
func (m *Manager) Tools(ctx context.Context, id string) ([]Tool, error) { return nil, nil }

// Call runs one tool in the session's environment.
func (m *Manager) Call(ctx context.Context, r CallRequest) (CallResult, error) {
	return CallResult{}, nil
}

// Stat describes one file of the environment; links at the end are not followed.
func (m *Manager) Stat(ctx context.Context, id, path string) (backends.FileInfo, error) {
	return backends.FileInfo{}, nil
}

// ReadDirectory lists a directory of the environment by name.
func (m *Manager) ReadDirectory(ctx context.Context, id, path string) ([]backends.FileInfo, error) {
	return nil, nil
}

// ReadFile returns at most length bytes from offset on; length < 0 means to
// the end, at most [backends.MaxFileRead].
func (m *Manager) ReadFile(ctx context.Context, id, path string, offset, length int64) ([]byte, error) {
	return nil, nil
}

// WriteFile replaces a file of at most [backends.MaxFileRead] bytes.
func (m *Manager) WriteFile(ctx context.Context, id, path string, data []byte) (backends.FileInfo, error) {
	return backends.FileInfo{}, nil
}

// StartProcess starts a background process. It is a call like a tool's, with
// events of its own under the name "process.start".
func (m *Manager) StartProcess(ctx context.Context, r StartProcess) (Process, error) {
	return Process{}, nil
}

// ListProcesses lists the session's processes, oldest first.
func (m *Manager) ListProcesses(ctx context.Context, id string) ([]Process, error) { return nil, nil }

// GetProcess returns one process.
func (m *Manager) GetProcess(ctx context.Context, id, process string) (Process, error) {
	return Process{}, nil
}

// ReadProcess reads output.
func (m *Manager) ReadProcess(ctx context.Context, id, process string, r ReadProcess) (ProcessOutput, error) {
	return ProcessOutput{}, nil
}

// WriteProcess writes to the process's standard input or terminal.
func (m *Manager) WriteProcess(ctx context.Context, id, process string, data []byte) (Process, error) {
	return Process{}, nil
}

// CloseStdin closes the process's standard input.
func (m *Manager) CloseStdin(ctx context.Context, id, process string) (Process, error) {
	return Process{}, nil
}

// ResizeProcess sets the size of the process's terminal.
func (m *Manager) ResizeProcess(ctx context.Context, id, process string, size tool.TTY) (Process, error) {
	return Process{}, nil
}

// SignalProcess sends a signal by name, such as "SIGINT", to the process group.
func (m *Manager) SignalProcess(ctx context.Context, id, process, signal string) (Process, error) {
	return Process{}, nil
}

// StopProcess ends the process group: SIGTERM, after 2 s SIGKILL.
func (m *Manager) StopProcess(ctx context.Context, id, process string) (Process, error) {
	return Process{}, nil
}

// WaitProcess waits until the process ended, at most timeout (0: [MaxWait]).
// TimedOut says that it still runs.
func (m *Manager) WaitProcess(ctx context.Context, id, process string, timeout time.Duration) (p Process, timedOut bool, err error) {
	return Process{}, false, nil
}

// PublishArtifact publishes a file of the environment, as present_artifact does.
func (m *Manager) PublishArtifact(ctx context.Context, id, path string) (artifacts.Artifact, artifacts.Preview, error) {
	return artifacts.Artifact{}, artifacts.Preview{}, nil
}

// Profiles lists the configured profiles by name, "local" first, and the
// default's name. With a configuration that is wrong as a whole it returns
// "local" alone and the error.
func (m *Manager) Profiles(ctx context.Context) (list []ProfileInfo, def string, err error) {
	return nil, "", nil
}

// CheckProfile really tries the profile and reports each step.
func (m *Manager) CheckProfile(ctx context.Context, name string) (backends.Health, error) {
	return backends.Health{}, nil
}

// Backends says what this build can do and which backends are usable now.
func (m *Manager) Backends(ctx context.Context) []BackendInfo { return nil }

// Prune removes, or with DryRun lists, what backends left behind whose owner is
// proven gone.
func (m *Manager) Prune(ctx context.Context, r PruneRequest) ([]backends.Resource, error) {
	return nil, nil
}

// ConfigChanged reads the configuration again and tells the sink when it is
// another one.
func (m *Manager) ConfigChanged() {}

// Shutdown detaches from every environment, leaving them alive as their
// profiles say, and gives up the sessions' locks. Calls in flight end. It
// returns when all is done or ctx ends, whichever is first.
func (m *Manager) Shutdown(ctx context.Context) error { return nil }
