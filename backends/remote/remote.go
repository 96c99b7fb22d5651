package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Host makes and reaches the environments of one backend. Its methods may be
// called concurrently for different bindings; remote calls them one at a time
// for the same one.
type Host interface {
	// Create makes the environment. When it fails nothing is left behind.
	Create(ctx context.Context, b backends.Binding, p backends.Progress) error
	// Attach makes sure that what was created is there and running. What is gone
	// is [tool.EnvironmentLost].
	Attach(ctx context.Context, b backends.Binding) error
	// Dial opens a stream to the environment's worker, which it starts when none
	// runs. An error that is not Retryable ends the attempt to connect; a
	// Retryable one is tried again.
	Dial(ctx context.Context, b backends.Binding) (Stream, error)
	// Remove removes the environment and what it holds. What is gone is no error.
	Remove(ctx context.Context, b backends.Binding) error
}

// Stream is one connection to a worker. Close must make a blocked Read and
// Write return.
type Stream struct {
	io.ReadWriteCloser
	// Mark is what the far end prints, and a newline, before its first frame:
	// what precedes it is dropped. Empty: nothing is printed on purpose.
	Mark string
	// SharedDirectory is a directory of the host's that the far end sees, and cannot
	// write to: the worker may come over to a socket in it. Empty when there is none.
	SharedDirectory string
	// Said is what the far end has said beside the stream, for the error of one
	// that failed; nil when that is nowhere.
	Said func() string
	// Redact takes out of a text of the far end what nobody may see; nil takes
	// nothing out.
	Redact func(string) string
}

// Options are a backend's choices.
type Options struct {
	// Backend is the kind, for [backends.Info] and errors.
	Backend string
	// Root is the workspace inside the environment; empty means the profile's.
	Root string
	// RequireExistingWorkspace and RemoveWorkspaceOnExit go to the worker as they
	// are. On a reconnect an existing workspace is always required.
	RequireExistingWorkspace bool
	RemoveWorkspaceOnExit    bool
	// Required are capabilities without which the environment is of no use.
	Required []string
	// Tools describes the workspace tools of a peer that cannot list its own.
	Tools []tool.Description
	// HandshakeTimeout bounds one initialize; 0 means [DefaultHandshakeTimeout].
	HandshakeTimeout time.Duration
	// ConnectBudget bounds all attempts of one connect together; 0 means
	// [DefaultConnectBudget].
	ConnectBudget time.Duration
	// LimitBudget bounds the attempts of a connect that meet a limit ([tool.Overloaded]);
	// 0 means the ConnectBudget.
	LimitBudget time.Duration
	// OneAttempt says that a connect is one attempt: what fails is not tried again
	// by itself, however much it looks as if it might pass.
	OneAttempt bool
	// Patience is how long a call waits for a connection while the environment
	// cannot be attached to; 0 means [DefaultPatience].
	Patience time.Duration
	// CancelGrace is as in [wire.ClientOptions].
	CancelGrace time.Duration
	// Log gets what nobody can be told; nil discards it.
	Log *slog.Logger

	programGrace time.Duration // shorter in tests
	jobGrace     time.Duration
}

// Environment is one environment behind a Host. It connects again by itself:
// at the next call, or at once when a process is running whose end somebody may
// be waiting for, or when a call was in flight, whose worker may have died and left
// behind what that had started. Where connections are lost as soon as they are made it
// takes its time for that. What somebody has stopped is started by a call only.
type Environment struct {
	host   Host
	o      Options
	log    *slog.Logger
	events *backends.Hub
	track  *tracker
	settle *settler

	life       context.Context // ends with Detach
	end        context.CancelFunc
	goroutines sync.WaitGroup

	conn atomic.Pointer[connection] // nil while disconnected
	away atomic.Pointer[error]      // why the attempt that is going on cannot attach yet
	info atomic.Pointer[wire.Initialized]

	deadlines deadlines // of requests

	closing atomic.Int32 // exports whose end the far end has not confirmed yet

	b backends.Binding // does not change once Open has returned

	mu       sync.Mutex
	attempt  *attempt      // the connect that is going on
	short    bool          // the last connection was lost before it was steady
	rest     time.Duration // before the next connect that nobody waits for
	lost     error         // why the environment will not come back
	ending   bool          // Shutdown has begun: whoever connects from now on does it for that
	detached bool          // Detach has begun, or Shutdown has connected
}

var (
	_ backends.Environment = (*Environment)(nil)
	_ backends.FileSystem  = (*Environment)(nil)
	_ backends.CodeRunner  = (*Environment)(nil)
)

// Open creates the environment, or attaches to it when b is marked provisioned,
// connects to its worker, and returns it ready. When that fails after a
// creation, the environment is removed again.
func Open(ctx context.Context, h Host, b backends.Binding, p backends.Progress, o Options) (*Environment, error) {
	e := newEnvironment(h, b, o)
	err := e.open(ctx, p)
	if err != nil {
		return nil, errors.Join(err, e.Detach(context.WithoutCancel(ctx)))
	}
	return e, nil
}

func newEnvironment(h Host, b backends.Binding, o Options) *Environment {
	if o.Root == "" {
		o.Root = b.Profile.Workspace
	}
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if o.ConnectBudget <= 0 {
		o.ConnectBudget = DefaultConnectBudget
	}
	if o.LimitBudget <= 0 {
		o.LimitBudget = o.ConnectBudget
	}
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.programGrace <= 0 {
		o.programGrace = programGrace
	}
	if o.jobGrace <= 0 {
		o.jobGrace = jobGrace
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Environment{
		host: h, o: o, b: b, events: backends.NewHub(),
		log: o.Log.With("environment", b.Environment, "session", b.Session),
	}
	e.life, e.end = context.WithCancel(context.Background())
	e.track = newTracker(e.events)
	e.settle = newSettler(e)
	return e
}

// open makes or finds the environment, and connects.
func (e *Environment) open(ctx context.Context, p backends.Progress) error {
	created := !e.b.Provisioned
	if created {
		if err := e.host.Create(ctx, e.b, p); err != nil {
			return err
		}
		e.b.Provisioned = true
	} else if err := e.host.Attach(ctx, e.b); err != nil {
		return err
	}
	p.Report("connecting to the worker")
	err := e.connect(ctx, firstConnect, &attempt{wanted: true})
	if err == nil || !created {
		return err
	}
	remove, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeBudget)
	defer cancel()
	return errors.Join(err, e.host.Remove(remove, e.b))
}

// Info describes the environment, as the last handshake told.
func (e *Environment) Info() backends.Info {
	info := backends.Info{Backend: e.o.Backend, Environment: e.b.Environment, Root: e.o.Root}
	if in := e.info.Load(); in != nil {
		info.Root, info.Capabilities = in.Root, in.Capabilities
	}
	return info
}

// Events carries the process events and changes of state of this environment.
func (e *Environment) Events() backends.Events { return e.events }
