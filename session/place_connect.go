package session

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/store"
)

// opening is one attempt to open a place's environment, shared by all who
// wait for it. Its members are guarded by the session's mu until done is closed.
type opening struct {
	cancel   context.CancelCauseFunc
	waiters  int
	progress []backends.Progress
	done     chan struct{}
	env      backends.Environment
	err      error
}

// environment returns the place's environment, opening it at the first use.
func (p *place) environment(ctx context.Context, progress backends.Progress) (backends.Environment, error) {
	s := p.s
	s.mu.Lock()
	switch {
	case s.over:
		defer s.mu.Unlock()
		return nil, s.gone()
	case p.env != nil:
		defer s.mu.Unlock()
		return p.env, nil
	}
	o := p.opening
	if o == nil {
		o = p.startOpening()
	}
	o.waiters++
	if progress != nil {
		o.progress = append(o.progress, progress)
	}
	s.mu.Unlock()

	select {
	case <-o.done:
		return o.env, at(p.saved.Profile, o.err)
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
	return nil, at(p.saved.Profile, ended(ctx, "opening the environment of the session %q", s.id))
}

// startOpening begins an attempt. The caller holds mu.
func (p *place) startOpening() *opening {
	s := p.s
	ctx, cancel := context.WithCancelCause(s.m.ctx)
	unhook := context.AfterFunc(s.life, func() { cancel(context.Cause(s.life)) })
	o := &opening{cancel: cancel, done: make(chan struct{})}
	p.opening = o
	p.become(StateConnecting, nil)
	s.m.work.Go(func() {
		defer close(o.done)
		defer cancel(nil)
		defer unhook()
		env, err := p.connect(ctx, func(step string) { s.report(o, step) })
		p.opened(o, env, err)
	})
	return o
}

// report passes progress on to everybody who waits.
func (s *live) report(o *opening, step string) {
	s.mu.Lock()
	listeners := o.progress
	s.mu.Unlock()
	for _, listener := range listeners {
		listener.Report(step)
	}
}

// opened ends an attempt.
func (p *place) opened(o *opening, env backends.Environment, err error) {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.opening = nil
	o.env, o.err = env, err
	switch {
	case err == nil:
		p.env, p.tools = env, nil
		p.saved.Root = env.Info().Root
		p.startPump(env)
		p.become(StateReady, nil)
	case tool.KindOf(err) == tool.EnvironmentLost:
		p.become(StateFailed, err)
	case tool.KindOf(err) == tool.Cancelled:
		p.become(StateBound, nil)
	default:
		p.become(StateDisconnected, err)
	}
}

// connect opens the environment, again after quick failures that may pass.
func (p *place) connect(ctx context.Context, progress backends.Progress) (backends.Environment, error) {
	backend, err := p.backend()
	if err != nil {
		return nil, err
	}
	tries := p.s.m.backoff()
	for {
		begun := p.s.m.o.Now()
		env, err := p.provision(ctx, backend, progress)
		if err == nil {
			return env, nil
		}
		e, ok := errors.AsType[*tool.Error](err)
		if !ok || !e.Retryable || p.s.m.o.Now().Sub(begun) >= longTry || tries.left <= 0 || ctx.Err() != nil {
			return nil, err
		}
		progress.Report("Trying again: " + e.Message)
		if !tries.pause(ctx) {
			return nil, err
		}
	}
}

// execution is how tries are repeated: as the file says now, or the defaults.
func (m *Manager) execution() config.Execution {
	c, err := m.o.Config.Load()
	if err != nil {
		return config.Empty().Execution
	}
	return c.Execution
}

// backend is the one that the place is bound to.
func (p *place) backend() (backends.Backend, error) {
	kind := p.saved.Profile.Backend
	b, ok := p.s.m.o.Registry.Get(kind)
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
func (p *place) provision(ctx context.Context, backend backends.Backend, progress backends.Progress) (_ backends.Environment, err error) {
	s, st := p.s, p.s.m.store
	s.mu.Lock()
	v := provisioning{p: p, backend: backend, saved: p.saved, nothing: true}
	s.mu.Unlock()
	if v.saved.Removed && !p.onHost() {
		return nil, removedWith(s.id)
	}
	lock, err := st.LockEnvironment(ctx, v.saved.Environment)
	if err != nil {
		return nil, known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if v.begun, err = st.Described(v.saved.Environment); err != nil {
		return nil, known(err)
	}
	defer func() {
		if err != nil && !v.begun && v.nothing {
			// It is known as one that was never begun, which nobody has to remove.
			err = errors.Join(err, st.Undescribe(v.saved.Environment))
		}
	}()
	v.described, err = st.Describe(store.Environment{
		Identity: v.saved.Environment, Backend: v.saved.Profile.Backend, Profile: v.saved.Profile.Name,
		Shared: v.saved.Profile.Shared, CreatedAt: s.m.o.Now(),
	})
	if err != nil {
		return nil, known(err)
	}
	if err := p.sameIncarnation(v.described); err != nil {
		return nil, err
	}
	if v.b, err = p.binding(); err != nil {
		return nil, err
	}
	env, err := v.open(ctx, progress)
	if err != nil {
		return nil, err
	}
	if err := v.confirm(ctx, env); err != nil {
		return nil, err
	}
	return env, nil
}

// provisioning is one attempt to have the environment of a place.
type provisioning struct {
	p         *place
	backend   backends.Backend
	saved     store.Place // the place as it was before
	described store.Environment
	b         backends.Binding
	begun     bool // its creation was begun before, so that there may be something of it
	nothing   bool // nothing of it was made since
}

// open opens the environment. One that is gone is made anew where nothing is missed.
func (v *provisioning) open(ctx context.Context, progress backends.Progress) (backends.Environment, error) {
	s := v.p.s
	var err error
	if v.b.Secrets.Environment, err = v.saved.Profile.Environment(s.m.o.Environ()); err != nil {
		if !v.b.Provisioned {
			return nil, err
		}
		// What the environment was first given is still there.
		v.b.Secrets.Environment = nil
	}
	env, err := v.backend.Open(ctx, v.b, progress)
	v.nothing = backends.MadeNothing(err)
	if tool.KindOf(err) == tool.EnvironmentLost && v.b.Provisioned && v.p.missesNothing(v.saved) {
		progress.Report("The environment is gone and is made anew")
		if v.described, err = s.m.store.Renew(v.described); err != nil {
			return nil, known(err)
		}
		v.b.Provisioned, v.begun, v.nothing = false, false, true // the old one is gone
		if v.b.Secrets.Environment, err = v.saved.Profile.Environment(s.m.o.Environ()); err != nil {
			return nil, err
		}
		env, err = v.backend.Open(ctx, v.b, progress)
		v.nothing = backends.MadeNothing(err)
	}
	if err != nil {
		return nil, known(err)
	}
	return env, nil
}

// confirm checks what was opened and notes that it exists. When that fails it lets go of
// the environment, and removes it unless it was there before.
func (v *provisioning) confirm(ctx context.Context, env backends.Environment) error {
	if err := v.p.checkPacks(ctx, env); err != nil {
		ctx := context.WithoutCancel(ctx)
		if v.b.Provisioned { // with what runs there
			return known(errors.Join(err, env.Detach(ctx)))
		}
		return known(errors.Join(err, env.Shutdown(ctx), v.backend.Remove(ctx, v.b)))
	}
	if !v.b.Provisioned {
		if err := v.p.s.m.store.MarkProvisioned(v.saved.Environment, true); err != nil {
			return known(errors.Join(err, env.Shutdown(ctx), v.backend.Remove(ctx, v.b)))
		}
	}
	if err := v.p.enter(v.described); err != nil {
		return known(errors.Join(err, env.Detach(ctx)))
	}
	return nil
}

// sameIncarnation refuses a shared environment that was removed after the
// session had been in it, and made anew for others: what the session had is lost,
// and the other must not pass for it.
func (p *place) sameIncarnation(e store.Environment) error {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	was := p.saved.Incarnation
	if was == "" || was == e.Incarnation || p.onHost() {
		return nil
	}
	p.saved.Removed = true
	return removedWith(p.s.id)
}

// enter notes which incarnation of a shared environment the session is in.
func (p *place) enter(e store.Environment) error {
	note := func(incarnation string) (was string) {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		was, p.saved.Incarnation = p.saved.Incarnation, incarnation
		return was
	}
	if !e.Shared {
		return nil
	}
	was := note(e.Incarnation)
	if was == e.Incarnation {
		return nil
	}
	err := p.s.save()
	if err != nil {
		note(was) // the next try is to save it
	}
	return err
}

// missesNothing reports whether a session loses nothing when a new environment
// takes the place of its own that is gone: because the files lie on the host, or
// because it is new to one that others shared until the idle limit. A local one
// is never made anew: it is the folder, and when that is gone nothing is left to
// work in, but perhaps a worker whose processes are still to be ended.
func (p *place) missesNothing(saved store.Place) bool {
	b := saved.Profile
	return p.onHost() && b.Backend != profile.Local || b.Shared && !b.Persistent && saved.Incarnation == ""
}

func (p *place) onHost() bool { return onHost(p.s.folder, p.saved.Profile) }

// onHost reports whether everything that a session in the folder would miss of an
// environment of the profile lies on the host, so that a new environment in the
// place of a lost one hides nothing.
func onHost(folder string, p profile.Profile) bool {
	switch {
	case p.Persistent:
		return false
	case p.Backend == profile.WASM:
		return true // a guest has no directories but those of the host
	}
	return p.Backend == profile.Local && folder != "" || p.HostWorkspace != ""
}

// binding is what backends are told about the place, but the variables.
func (p *place) binding() (backends.Binding, error) {
	st := p.s.m.store
	identity := p.identity()
	dir, err := st.StateDir(identity)
	if err != nil {
		return backends.Binding{}, known(err)
	}
	is, err := st.Provisioned(identity)
	if err != nil {
		return backends.Binding{}, known(err)
	}
	token, err := p.token()
	if err != nil {
		return backends.Binding{}, known(err)
	}
	return backends.Binding{
		Session: p.s.id, Environment: identity, Profile: p.profile(),
		WorkspaceFolder: p.s.folder, Provisioned: is,
		StateDir: dir, RuntimeDir: p.s.m.o.RuntimeDir, Store: st.ID(), Packs: p.packsOf(),
		Secrets: backends.Secrets{Token: token},
	}, nil
}

// token authenticates the session's connections to the place. Each place has one
// of its own: what an environment knows opens no other.
func (p *place) token() (string, error) {
	if p.main() {
		return p.s.m.store.Token(p.s.id)
	}
	return p.s.m.store.PlaceToken(p.s.id, p.identity())
}
