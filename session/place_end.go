package session

import (
	"context"
	"errors"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// close ends the session's part of the environment, and removes the environment
// unless it is to be kept.
func (p *place) close(ctx context.Context) error {
	if p.saved.Removed {
		return p.forgetRemoved(ctx)
	}
	env := p.current()
	return p.withLockedEnvironment(ctx, p.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		return p.endPart(ctx, env, b, backend, ending{keep: p.saved.Profile.Persistent})
	})
}

// withLockedEnvironment runs f when there is an environment, while nobody else
// makes or removes it. One that is not known to have been created, and that no
// other session is bound to, is forgotten after unfinished has succeeded.
func (p *place) withLockedEnvironment(ctx context.Context, unfinished func(context.Context) error, f func(b backends.Binding, backend backends.Backend) error) (err error) {
	st := p.s.m.store
	lock, err := st.LockEnvironment(ctx, p.identity())
	if err != nil {
		return known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	is, err := st.Provisioned(p.identity())
	if err != nil {
		return known(err)
	}
	if !is {
		others, err := p.others(true)
		if err != nil || others {
			return known(err)
		}
		if err := unfinished(ctx); err != nil {
			return err
		}
		return known(st.RemoveEnvironment(p.identity()))
	}
	backend, err := p.backend()
	if err != nil {
		return err
	}
	b, err := p.binding()
	if err != nil {
		return err
	}
	return f(b, backend)
}

// removeUnfinished removes what there may be of an environment whose creation was
// begun and never ended: a service was killed in the middle of it.
func (p *place) removeUnfinished(ctx context.Context) error {
	begun, err := p.s.m.store.Described(p.identity())
	if err != nil || !begun {
		return known(err)
	}
	backend, err := p.backend()
	if err != nil {
		return err
	}
	b, err := p.binding()
	if err != nil {
		return err
	}
	return known(backend.Remove(ctx, b))
}

// reach connects to an environment that is only opened to be ended. One that is
// gone is nil and no error; one that was stopped is not started for that, and is
// [backends.ErrStopped].
func (p *place) reach(ctx context.Context, backend backends.Backend, b backends.Binding) (backends.Environment, error) {
	// Its processes have their variables already, and nobody will use its packs.
	b.Packs, b.OnlyRunning = nil, true
	env, err := backend.Open(ctx, b, nil)
	if tool.KindOf(err) == tool.EnvironmentLost {
		return nil, nil
	}
	if err != nil {
		return nil, known(err)
	}
	return env, nil
}

// shut ends the session's processes and worker. The last events still reach
// the sink. With forget the environment is to keep nothing of the session, if it can.
func (p *place) shut(ctx context.Context, env backends.Environment, forget bool) error {
	end, limit := env.Shutdown, p.saved.Profile.ShutdownTimeout
	if forgetter, ok := env.(backends.Forgetter); ok && forget {
		end, limit = forgetter.Forget, limit+backends.ForgetTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	// What is gone already needs no end.
	if err := end(ctx); err != nil && tool.KindOf(err) != tool.EnvironmentLost {
		return known(err)
	}
	p.release()
	err := env.Detach(ctx)
	p.stopPump(ctx)
	return known(err)
}

// remove removes the environment and everything that is known about it. With forget
// the session is forgotten next, by [live.forgetAll], unless something else of it is
// kept.
func (p *place) remove(ctx context.Context, backend backends.Backend, b backends.Binding, forget bool) error {
	s := p.s
	if err := backend.Remove(ctx, b); err != nil {
		return known(err)
	}
	// Saved before the mark goes: a crash in between must not make an empty
	// environment of a removed one.
	s.mu.Lock()
	p.saved.Removed = true
	s.mu.Unlock()
	err := s.save()
	if forget && tool.IsDiskFull(err) {
		// The mark stays until the session is forgotten, which makes room.
		p.marked = true
		return nil
	}
	if err != nil {
		return known(err)
	}
	return known(s.m.store.RemoveEnvironment(p.identity()))
}

// forgetAll forgets the session, whose environments were ended.
func (s *live) forgetAll(ctx context.Context) error {
	errs := []error{s.erase()}
	for _, p := range s.places() {
		if p.marked && errs[0] == nil {
			errs = append(errs, p.forgetRemoved(ctx))
		}
	}
	return errors.Join(errs...)
}

func (p *place) others(closed bool) (bool, error) {
	return p.s.m.others(p.s.id, p.saved, closed)
}

// delete removes the environment unless another session is bound to it, which
// then only loses this session's part. With forget the session is to be forgotten
// next.
func (p *place) delete(ctx context.Context, forget bool) error {
	if p.saved.Removed {
		return p.forgetRemoved(ctx)
	}
	env := p.current()
	return p.withLockedEnvironment(ctx, p.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		return p.endPart(ctx, env, b, backend, ending{closed: p.saved.Profile.Persistent, forget: forget})
	})
}

// ending is how a session's part of an environment is ended.
type ending struct {
	// keep has the environment stay also where no other session is bound to it.
	keep bool
	// closed has closed sessions count as bound, since they may come back.
	closed bool
	// forget is as in remove, and has an environment that stays forget the session.
	forget bool
}

// endPart ends the session's part of its environment, and removes the environment
// unless it is to be kept or another session is bound to it. The environment is locked.
func (p *place) endPart(ctx context.Context, env backends.Environment, b backends.Binding, backend backends.Backend, how ending) error {
	others, err := p.others(how.closed)
	if err != nil {
		return known(err)
	}
	kept := how.keep || others
	if env == nil && kept && (!p.saved.Ended || how.forget) {
		// Its worker may still run processes: it has to be reached to end them. So has
		// what the environment keeps of the session, to be forgotten.
		env, err = p.reach(ctx, backend, b)
		ended := p.saved.Ended || errors.Is(err, backends.ErrStopped)
		switch {
		case err == nil:
		case !ended || ctx.Err() != nil:
			return err
		case how.forget:
			// Nothing of the session runs there, and what is kept of it goes with the
			// environment at last: no reason to keep a session that is to be deleted.
			p.unforgotten = err
		}
	}
	if env != nil {
		switch err := p.shut(ctx, env, kept && how.forget); {
		case err == nil:
		case !kept && tool.IsDiskFull(err):
			// Its removal, which makes room, ends what runs there too, or fails.
			p.detach(ctx)
		case kept && how.forget && errors.Is(err, backends.ErrStopped):
			p.detach(ctx)
			p.unforgotten = err
		default:
			return err
		}
	}
	if kept {
		p.noteEnded()
		return nil
	}
	return p.remove(ctx, backend, b, how.forget)
}

// noteEnded notes that nothing of the session is left in an environment that stays. It
// is saved when the session is given up, which is next.
func (p *place) noteEnded() {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	p.saved.Ended = true
}

// forgetRemoved forgets an environment that was removed, where a service was killed
// before it had done so.
func (p *place) forgetRemoved(ctx context.Context) (err error) {
	lock, err := p.s.m.store.LockEnvironment(ctx, p.identity())
	if err != nil {
		return known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	// A shared one may have been made anew by others.
	others, err := p.others(true)
	if err == nil && !others {
		err = p.s.m.store.RemoveEnvironment(p.identity())
	}
	return known(err)
}

// detach lets go of the environment, if it is open, whatever becomes of it next. A call
// that does not end is not waited for any longer than that takes otherwise.
func (p *place) detach(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, keepBudget)
	defer cancel()
	if env := p.release(); env != nil {
		if err := env.Detach(ctx); err != nil {
			p.s.m.log.Warn("an environment was not let go of cleanly", "session", p.s.id, "environment", p.identity(), "error", err)
		}
	}
	p.stopPump(ctx)
}

// removeAnyway removes an environment in which something could not be ended, and
// that with it, unless another session is bound to it. It returns why something
// may be left: the cause, and what the removal failed of.
func (p *place) removeAnyway(ctx context.Context, cause error) error {
	p.detach(ctx)
	left := cause
	err := p.withLockedEnvironment(ctx, p.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		others, err := p.others(p.saved.Profile.Persistent)
		if err != nil || others {
			return err
		}
		if err := p.remove(ctx, backend, b, true); err != nil {
			return err
		}
		left = nil
		return nil
	})
	if err != nil && err.Error() == cause.Error() {
		return cause // it is what failed before
	}
	return errors.Join(left, err)
}

// forgetEnvironment lets go of an environment that could not be removed. What
// it kept on this machine stays for inspection when others are bound to it.
func (p *place) forgetEnvironment(ctx context.Context) error {
	p.detach(ctx)
	others, err := p.others(true)
	if err != nil || others {
		return err
	}
	return p.s.m.store.RemoveEnvironment(p.identity())
}
