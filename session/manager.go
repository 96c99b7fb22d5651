package session

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/plugins"
	"github.com/caisson-dev/caisson/session/store"
)

// Options is what a Manager works with.
type Options struct {
	// StateDir holds the bindings; it is created 0700. Two services may share it.
	StateDir string
	// RuntimeDir is a short directory for sockets; it is created 0700.
	RuntimeDir string
	// Config is where the user's configuration comes from; nil is a machine
	// without one.
	Config config.Source
	// Registry holds the backends of this build; "local" must be in it.
	Registry *backends.Registry
	// Artifacts receives what sessions publish.
	Artifacts *artifacts.Store
	// Plugins holds the registered tools; nil is a service without any.
	Plugins *plugins.Store
	// Sink is told what happens; nil drops it.
	Sink Sink
	// Log gets what nobody else can be told; nil drops it.
	Log *slog.Logger
	// Environ returns this service's variables; nil is [os.Environ].
	Environ func() []string
	// Now is the clock; nil is [time.Now].
	Now func() time.Time
}

// Manager owns the sessions of one service process. Its methods may be called
// concurrently; their errors have a [*tool.Error] in their chain.
type Manager struct {
	o      Options
	store  *store.Store
	sink   Sink
	log    *slog.Logger
	watch  *watch
	follow *follower

	expire sync.Once
	reap   sync.Once

	// ctx ends when Shutdown has begun, and with it whatever opens an
	// environment; work counts the goroutines that belong to the manager.
	ctx  context.Context
	stop context.CancelCauseFunc
	work sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*live
	claims   map[string]chan struct{} // sessions that are being opened, closed or deleted
	down     bool
}

// errShutdown is why everything ends at last. Whoever returns it as the cause of a
// context that is over says what kind of error it is, too.
var errShutdown error = tool.Errorf(tool.Cancelled, "the service is shutting down")

// New makes a manager on the state directory. It reads no configuration: a bad
// one fails each Open of a new session.
func New(o Options) (*Manager, error) {
	if o.Config == nil {
		o.Config = config.File("")
	}
	if o.Environ == nil {
		o.Environ = os.Environ
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Sink == nil {
		o.Sink = discard{}
	}
	st, err := store.Open(o.StateDir, o.Log)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "the state directory %s cannot be used: %w", o.StateDir, err).
			WithPath(o.StateDir).WithHint("Make it a directory that you can write to, or choose another one.")
	}
	if err := store.PrivateDir(o.RuntimeDir); err != nil {
		return nil, tool.Errorf(tool.Internal, "the runtime directory %s cannot be used: %w", o.RuntimeDir, err).
			WithPath(o.RuntimeDir).WithHint("Make it a directory of your own, or set XDG_RUNTIME_DIR.")
	}
	m := &Manager{
		o: o, store: st, sink: o.Sink, log: o.Log,
		sessions: map[string]*live{}, claims: map[string]chan struct{}{},
	}
	m.ctx, m.stop = context.WithCancelCause(context.Background())
	m.watch = startWatch(m)
	m.follow = newFollower(m)
	return m, nil
}

// Shutdown detaches from every environment, leaving them alive as their
// profiles say, and gives up the sessions' locks. Calls in flight end. It
// returns when all is done, or when ctx ends: what has not ended then is in
// the error.
func (m *Manager) Shutdown(ctx context.Context) error {
	m.mu.Lock()
	m.down = true
	var all []*live
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()

	m.stop(errShutdown)
	errs := make([]error, len(all)+1)
	var detaching sync.WaitGroup
	for i, s := range all {
		detaching.Go(func() { errs[i] = s.detach(ctx) })
	}
	done := make(chan struct{})
	go func() {
		detaching.Wait()
		m.follow.close()
		errs[len(all)] = m.watch.close()
		m.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return errors.Join(errs...)
	case <-ctx.Done():
		return tool.Errorf(tool.Timeout, "not every environment could be detached in time: %w", context.Cause(ctx))
	}
}

// expireArtifacts removes, once and beside everything else, the artifacts that
// are kept no longer. A configuration with an error removes none.
func (m *Manager) expireArtifacts() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.o.Artifacts == nil || m.down {
		return
	}
	m.expire.Do(func() {
		m.work.Go(func() {
			c, err := m.o.Config.Load()
			if err == nil {
				_, err = m.o.Artifacts.Expire(m.ctx, c.Keep)
			}
			if err != nil && m.ctx.Err() == nil {
				m.log.Warn("old artifacts were not removed", "error", err)
			}
		})
	})
}

// find returns the session if this service has it open.
func (m *Manager) find(id string) *live {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions[id]
}

// use finds an open session for a request, or says that there is none.
func (m *Manager) use(id string) (*live, error) {
	m.mu.Lock()
	s, down := m.sessions[id], m.down
	m.mu.Unlock()
	switch {
	case s != nil:
		return s, nil
	case down:
		// It may have been open a moment ago.
		return nil, errShutdown
	}
	if _, err := m.load(id); err != nil {
		return nil, err
	}
	return nil, notOpen(id)
}

func notOpen(id string) error {
	return tool.Errorf(tool.SessionNotFound, "the session %q is not open in this service", id).
		WithHint("Open it by its id first: it resumes as it was.")
}

// load reads a session of the state directory. One that is not there is
// [tool.SessionNotFound].
func (m *Manager) load(id string) (store.Session, error) {
	saved, err := m.store.Load(id)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrID) {
		return saved, unknownSession(id)
	}
	return saved, known(err)
}

// claim waits until nobody else opens, closes or deletes the session, and
// returns what ends the claim.
func (m *Manager) claim(ctx context.Context, id string) (release func(), err error) {
	m.mu.Lock()
	down := m.down
	m.mu.Unlock()
	if down {
		return nil, errShutdown
	}
	return m.await(ctx, id)
}

// await is claim for Shutdown too.
func (m *Manager) await(ctx context.Context, id string) (release func(), err error) {
	for {
		m.mu.Lock()
		busy := m.claims[id]
		if busy == nil {
			mine := make(chan struct{})
			m.claims[id] = mine
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				delete(m.claims, id)
				close(mine)
				m.mu.Unlock()
				m.follow.released()
			}, nil
		}
		m.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			return nil, ended(ctx, "waiting for the session %q", id)
		}
	}
}

// add makes a session one of this service's, unless the service is going.
func (m *Manager) add(s *live) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down {
		return errShutdown
	}
	m.sessions[s.id] = s
	return nil
}

func (m *Manager) remove(s *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] == s {
		delete(m.sessions, s.id)
	}
}

// discard is the sink of a manager that has none.
type discard struct{}

func (discard) SessionChanged(Session)                                  {}
func (discard) SessionSeen(Session)                                     {}
func (discard) SessionRemoved(string)                                   {}
func (discard) ExecutionStarted(Execution)                              {}
func (discard) ExecutionCompleted(Execution)                            {}
func (discard) ExecutionFailed(Execution)                               {}
func (discard) Process(ProcessEvent)                                    {}
func (discard) Room(context.Context)                                    {}
func (discard) ArtifactPublished(artifacts.Artifact, artifacts.Preview) {}
func (discard) ArtifactsChanged()                                       {}
func (discard) ConfigChanged(error)                                     {}
