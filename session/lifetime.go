package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// dropBudget bounds how long a session that could not be opened is cleaned up
// after, which may mean to remove an environment.
const dropBudget = 30 * time.Second

// Close ends the session: its processes are stopped and its environment is
// removed, or kept when it is persistent or another session is bound to it.
// When that fails the session and all that it has are kept for inspection.
func (m *Manager) Close(ctx context.Context, id string) (Session, error) {
	l, release, err := m.take(ctx, id)
	if err != nil {
		return Session{}, err
	}
	defer release()
	if l.saved.Closed {
		// Closed before, and only taken to be looked at.
		return l.current(), known(l.abandon())
	}
	err = l.finish(ctx, tool.Errorf(tool.Cancelled, "the session %q was closed", id))
	if err == nil {
		err = l.closePlaces(ctx)
	}
	if err != nil {
		return Session{}, m.keep(ctx, l, err)
	}
	l.mu.Lock()
	l.saved.Closed, l.saved.LastUsedAt = true, m.o.Now()
	l.become(StateClosed, nil)
	l.mu.Unlock()
	return l.current(), known(l.leave())
}

// take makes the session one that this service owns, to close or delete it.
func (m *Manager) take(ctx context.Context, id string) (*live, func(), error) {
	release, err := m.claim(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	l, err := m.own(id)
	if err != nil {
		release()
		return nil, nil, err
	}
	return l, release, nil
}

// own is take without the claim, which the caller has.
func (m *Manager) own(id string) (*live, error) {
	if l := m.find(id); l != nil {
		return l, nil
	}
	if _, err := m.load(id); err != nil {
		return nil, err
	}
	lock, err := m.store.LockSession(id)
	if err != nil {
		return nil, busySession(id, err)
	}
	saved, err := m.load(id)
	if tool.KindOf(err) == tool.SessionNotFound {
		// Deleted in this moment; locking it has made its directory anew.
		err = errors.Join(err, m.store.Forget(id))
	}
	if err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	l := m.newLive(saved, lock)
	if err := m.add(l); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return l, nil
}

// abandon gives up a session that was taken and not changed.
func (s *live) abandon() error {
	err := s.finish(context.Background(), notOpen(s.id))
	s.m.remove(s)
	return errors.Join(err, s.lock.Release())
}

// keep leaves a session as it is after its end failed: nothing was removed, and
// closing it again tries again.
func (m *Manager) keep(ctx context.Context, l *live, cause error) error {
	l.mu.Lock()
	l.become(StateFailed, cause)
	l.mu.Unlock()
	err := l.detachAll(ctx)
	l.stopPumps(ctx)
	if err := errors.Join(err, l.leave()); err != nil {
		m.log.Warn("a session was not given up cleanly", "session", l.id, "error", err)
	}
	return known(cause)
}

// closePlaces ends the session's part of its environments, the main one last, and
// removes those that are not to be kept. The first that fails leaves the rest as
// they are.
func (s *live) closePlaces(ctx context.Context) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	for _, p := range slices.Backward(s.places()) {
		if err := p.close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// close ends the session's part of the environment, and removes the environment
// unless it is to be kept.
func (p *place) close(ctx context.Context) error {
	env := p.current()
	return p.withLockedEnvironment(ctx, p.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		others, err := p.others(false)
		if err != nil {
			return known(err)
		}
		kept := p.saved.Profile.Persistent || others
		if env == nil && kept {
			// Its worker may still run processes: it has to be reached to end them.
			env, err = p.reach(ctx, backend, b)
			if err != nil {
				return err
			}
		}
		if env != nil {
			if err := p.shut(ctx, env); err != nil {
				return err
			}
		}
		if kept {
			return nil
		}
		return p.remove(ctx, backend, b, false)
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
// gone is nil and no error.
func (p *place) reach(ctx context.Context, backend backends.Backend, b backends.Binding) (backends.Environment, error) {
	// Its processes have their variables already.
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
// the sink.
func (p *place) shut(ctx context.Context, env backends.Environment) error {
	ctx, cancel := context.WithTimeout(ctx, p.saved.Profile.ShutdownTimeout)
	defer cancel()
	// What is gone already needs no end.
	if err := env.Shutdown(ctx); err != nil && tool.KindOf(err) != tool.EnvironmentLost {
		return known(err)
	}
	p.release()
	err := env.Detach(ctx)
	p.stopPump(ctx)
	return known(err)
}

// remove removes the environment and everything that is known about it. With forget
// the session is forgotten next, and may be before.
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
	if forget && (tool.IsDiskFull(err) || errors.Is(err, errLeft)) {
		// Nothing can be saved. What is forgotten instead is not made anew either,
		// and makes room.
		err = s.erase()
	}
	if err != nil {
		return known(err)
	}
	return known(s.m.store.RemoveEnvironment(p.identity()))
}

func (p *place) others(closed bool) (bool, error) {
	return p.s.m.others(p.s.id, p.saved, closed)
}

// others reports whether another session is bound to the place's environment;
// closed ones count when they can be resumed, or with all.
func (m *Manager) others(session string, saved store.Place, closed bool) (bool, error) {
	if !saved.Profile.Shared {
		return false, nil
	}
	list, err := m.store.List()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(l store.Listed) bool {
		switch {
		case l.ID == session:
			return false
		case l.Err != nil:
			// It may be bound to this environment too: nothing is removed under it.
			return true
		}
		other, bound := l.Bound(saved.Environment)
		return bound && !other.Removed && (closed || !l.Closed)
	}), nil
}

// Delete closes the session and removes its environments, persistent or not,
// unless another session is bound to them, and forgets the session. With force an
// environment that cannot be reached is forgotten too; left then says what may
// still be there.
func (m *Manager) Delete(ctx context.Context, id string, force bool) (left string, err error) {
	l, release, err := m.take(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	return m.deleteOwned(ctx, l, force)
}

// deleteOwned is Delete of a session that the caller has taken.
func (m *Manager) deleteOwned(ctx context.Context, l *live, force bool) (left string, err error) {
	err = l.finish(ctx, tool.Errorf(tool.Cancelled, "the session %q was deleted", l.id))
	if err == nil {
		err = l.quiet(ctx)
	}
	if err != nil && !force {
		return "", m.keep(ctx, l, err)
	}
	unquiet := err
	var remains []string
	for _, p := range slices.Backward(l.places()) {
		err := unquiet
		if err == nil {
			err = p.delete(ctx, true)
		}
		switch {
		case err == nil:
			continue
		case !force:
			return "", m.keep(ctx, l, err)
		}
		if err = p.removeAnyway(ctx, err); err == nil {
			continue
		}
		remains = append(remains, fmt.Sprintf("The %s environment %s of the session %q could not be removed and may still exist: %v",
			p.saved.Profile.Backend, p.identity(), l.id, err))
		if err := p.forgetEnvironment(ctx); err != nil {
			return strings.Join(remains, "\n"), known(err)
		}
	}
	l.mu.Lock()
	l.become(StateClosed, nil)
	l.mu.Unlock()
	m.remove(l)
	err = known(errors.Join(l.erase(), l.lock.Release()))
	l.releasePlugins(ctx)
	return strings.Join(remains, "\n"), err
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
		return p.endPart(ctx, env, b, backend, p.saved.Profile.Persistent, forget)
	})
}

// endPart ends the session's part of its environment, and removes that unless
// another session is bound to it; closed ones count with all. Forget is as in remove.
// The environment is locked.
func (p *place) endPart(ctx context.Context, env backends.Environment, b backends.Binding, backend backends.Backend, all, forget bool) error {
	others, err := p.others(all)
	if err != nil {
		return known(err)
	}
	if env == nil && others {
		env, err = p.reach(ctx, backend, b)
		if err != nil {
			return err
		}
	}
	if env != nil {
		if err := p.shut(ctx, env); err != nil {
			return err
		}
	}
	if others {
		return nil
	}
	return p.remove(ctx, backend, b, forget)
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

// removeAnyway removes an environment in which something could not be ended, and
// that with it, unless another session is bound to it. It returns why something
// may be left: the cause, and what the removal failed of.
func (p *place) removeAnyway(ctx context.Context, cause error) error {
	if env := p.release(); env != nil {
		if err := env.Detach(ctx); err != nil {
			p.s.m.log.Warn("an environment that is removed could not be detached", "session", p.s.id, "error", err)
		}
	}
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
	if env := p.release(); env != nil {
		if err := env.Detach(ctx); err != nil {
			p.s.m.log.Warn("an environment that is forgotten could not be detached", "session", p.s.id, "error", err)
		}
	}
	p.stopPump(ctx)
	others, err := p.others(true)
	if err != nil || others {
		return err
	}
	return p.s.m.store.RemoveEnvironment(p.identity())
}
