package session

import (
	"context"
	"errors"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// opening is one attempt to open a session's environment, shared by all who
// wait for it. Its members are guarded by the session's mu until done is closed.
type opening struct {
	cancel   context.CancelCauseFunc
	waiters  int
	progress []backends.Progress
	done     chan struct{}
	env      backends.Environment
	err      error
}

// environment returns the session's environment, opening it at the first use.
func (s *live) environment(ctx context.Context, p backends.Progress) (backends.Environment, error) {
	s.mu.Lock()
	switch {
	case s.over:
		defer s.mu.Unlock()
		return nil, s.gone()
	case s.env != nil:
		defer s.mu.Unlock()
		return s.env, nil
	}
	o := s.opening
	if o == nil {
		o = s.startOpening()
	}
	o.waiters++
	if p != nil {
		o.progress = append(o.progress, p)
	}
	s.mu.Unlock()

	select {
	case <-o.done:
		return o.env, o.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	o.waiters--
	nobody := o.waiters == 0
	s.mu.Unlock()
	if nobody {
		// The creation is undone before we say that it did not happen.
		o.cancel(context.Cause(ctx))
		<-o.done
		if o.err == nil {
			return o.env, nil
		}
	}
	return nil, ended(ctx, "opening the environment of the session %q", s.id)
}

// startOpening begins an attempt. The caller holds mu.
func (s *live) startOpening() *opening {
	ctx, cancel := context.WithCancelCause(s.m.ctx)
	unhook := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	o := &opening{cancel: cancel, done: make(chan struct{})}
	s.opening = o
	s.become(StateConnecting, nil)
	s.m.work.Go(func() {
		defer close(o.done)
		defer cancel(nil)
		defer unhook()
		env, err := s.connect(ctx, func(step string) { s.report(o, step) })
		s.opened(o, env, err)
	})
	return o
}

// report passes progress on to everybody who waits.
func (s *live) report(o *opening, step string) {
	s.mu.Lock()
	listeners := o.progress
	s.mu.Unlock()
	for _, p := range listeners {
		p.Report(step)
	}
}

// opened ends an attempt.
func (s *live) opened(o *opening, env backends.Environment, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opening = nil
	o.env, o.err = env, err
	switch {
	case err == nil:
		s.env, s.tools = env, nil
		s.saved.Root = env.Info().Root
		s.startPump(env)
		s.become(StateReady, nil)
	case tool.KindOf(err) == tool.EnvironmentLost:
		s.become(StateFailed, err)
	case tool.KindOf(err) == tool.Cancelled:
		s.become(StateBound, nil)
	default:
		s.become(StateDisconnected, err)
	}
}

// longTry is how long an opening may have taken and, when it failed, still be
// tried again: repeated waits for an engine that does not answer would keep a
// person from learning so within 3 s.
const longTry = time.Second

// connect opens the environment, again after quick failures that may pass.
func (s *live) connect(ctx context.Context, p backends.Progress) (backends.Environment, error) {
	backend, err := s.backend()
	if err != nil {
		return nil, err
	}
	retry := s.m.execution()
	wait := retry.RetryBackoff
	for try := 0; ; try++ {
		begun := s.m.o.Now()
		env, err := s.provision(ctx, backend, p)
		if err == nil {
			return env, nil
		}
		var e *tool.Error
		again := errors.As(err, &e) && e.Retryable && try < retry.MaxRetries && s.m.o.Now().Sub(begun) < longTry
		if !again || ctx.Err() != nil {
			return nil, err
		}
		p.Report("Trying again: " + e.Message)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait *= 2
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// execution is how openings are repeated: as the file says now, or the defaults.
func (m *Manager) execution() config.Execution {
	c, err := m.o.Config.Load()
	if err != nil {
		return config.Empty().Execution
	}
	return c.Execution
}

// backend is the one that the session is bound to.
func (s *live) backend() (backends.Backend, error) {
	kind := s.saved.Profile.Backend // never changes
	b, ok := s.m.o.Registry.Get(kind)
	if !ok {
		return nil, notBuilt(kind)
	}
	return b, nil
}

func notBuilt(kind string) error {
	return tool.Errorf(tool.Unsupported, "this build has no backend %q", kind).
		WithHint("Choose a profile of another backend; backend/list names those that there are.")
}

// provision creates the environment or reattaches to it, and remembers that it
// exists. Nobody else makes or removes the same environment meanwhile.
func (s *live) provision(ctx context.Context, backend backends.Backend, p backends.Progress) (_ backends.Environment, err error) {
	st := s.m.store
	s.mu.Lock()
	saved := s.saved
	s.mu.Unlock()
	lock, err := st.LockEnvironment(ctx, saved.Environment)
	if err != nil {
		return nil, known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	described, err := st.Describe(store.Environment{
		Identity: saved.Environment, Backend: saved.Profile.Backend, Profile: saved.Profile.Name,
		Shared: saved.Profile.Shared, CreatedAt: s.m.o.Now(),
	})
	if err != nil {
		return nil, known(err)
	}
	if err := s.sameIncarnation(described); err != nil {
		return nil, err
	}
	b, err := s.m.binding(saved)
	if err != nil {
		return nil, err
	}
	if b.Secrets.Environment, err = saved.Profile.Environment(s.m.o.Environ()); err != nil {
		if !b.Provisioned {
			return nil, err
		}
		// What the environment was first given is still there.
		b.Secrets.Environment = nil
	}
	env, err := backend.Open(ctx, b, p)
	if tool.KindOf(err) == tool.EnvironmentLost && b.Provisioned && missesNothing(saved) {
		p.Report("The environment is gone and is made anew")
		if described, err = st.Renew(described); err != nil {
			return nil, known(err)
		}
		b.Provisioned = false
		if b.Secrets.Environment, err = saved.Profile.Environment(s.m.o.Environ()); err != nil {
			return nil, err
		}
		env, err = backend.Open(ctx, b, p)
	}
	if err != nil {
		return nil, known(err)
	}
	if !b.Provisioned {
		if err := st.MarkProvisioned(saved.Environment, true); err != nil {
			return nil, known(errors.Join(err, env.Shutdown(ctx), backend.Remove(ctx, b)))
		}
	}
	if err := s.enter(described); err != nil {
		return nil, known(errors.Join(err, env.Detach(ctx)))
	}
	return env, nil
}

// sameIncarnation refuses a shared environment that was removed after the
// session had been in it, and made anew for others: what the session had is lost,
// and the other must not pass for it.
func (s *live) sameIncarnation(e store.Environment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.saved.Incarnation
	if was == "" || was == e.Incarnation || onHost(s.saved) {
		return nil
	}
	s.saved.Removed = true
	return removedWith(s.id)
}

// enter notes which incarnation of a shared environment the session is in.
func (s *live) enter(e store.Environment) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.Shared || s.saved.Incarnation == e.Incarnation {
		return nil
	}
	s.saved.Incarnation = e.Incarnation
	return s.m.store.Save(s.saved)
}

// missesNothing reports whether a session loses nothing when a new environment
// takes the place of its own that is gone: because the files lie on the host, or
// because it is new to one that others shared until the idle limit. A local one
// is never made anew: it is the folder, and when that is gone nothing is left to
// work in, but perhaps a worker whose processes are still to be ended.
func missesNothing(b store.Session) bool {
	return onHost(b) && b.Profile.Backend != profile.Local || b.Profile.Shared && !b.Profile.Persistent && b.Incarnation == ""
}

// onHost reports whether everything that a session would miss lies on the
// host, so that a new environment in the place of a lost one hides nothing.
func onHost(b store.Session) bool {
	if b.Profile.Persistent {
		return false
	}
	return b.Profile.Backend == profile.Local && b.Folder != "" || b.Profile.HostWorkspace != ""
}

// binding is what backends are told about a session, but the variables.
func (m *Manager) binding(saved store.Session) (backends.Binding, error) {
	dir, err := m.store.StateDir(saved.Environment)
	if err != nil {
		return backends.Binding{}, known(err)
	}
	is, err := m.store.Provisioned(saved.Environment)
	if err != nil {
		return backends.Binding{}, known(err)
	}
	token, err := m.store.Token(saved.ID)
	if err != nil {
		return backends.Binding{}, known(err)
	}
	return backends.Binding{
		Session: saved.ID, Environment: saved.Environment, Profile: saved.Profile,
		WorkspaceFolder: saved.Folder, Provisioned: is,
		StateDir: dir, RuntimeDir: m.o.RuntimeDir, Store: m.store.ID(),
		Secrets: backends.Secrets{Token: token},
	}, nil
}
