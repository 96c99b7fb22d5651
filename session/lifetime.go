package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	env, err := l.finish(ctx, tool.Errorf(tool.Cancelled, "the session %q was closed", id))
	if err == nil {
		err = l.closeEnvironment(ctx, env)
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
	_, err := s.finish(context.Background(), notOpen(s.id))
	s.m.remove(s)
	return errors.Join(err, s.lock.Release())
}

// keep leaves a session as it is after its end failed: nothing was removed, and
// closing it again tries again.
func (m *Manager) keep(ctx context.Context, l *live, cause error) error {
	l.mu.Lock()
	env := l.env
	l.become(StateFailed, cause)
	l.mu.Unlock()
	var err error
	if env != nil {
		err = env.Detach(ctx)
	}
	l.stopPump(ctx)
	if err := errors.Join(err, l.leave()); err != nil {
		m.log.Warn("a session was not given up cleanly", "session", l.id, "error", err)
	}
	return known(cause)
}

// closeEnvironment ends the session's part of its environment, and removes the
// environment unless it is to be kept.
func (s *live) closeEnvironment(ctx context.Context, env backends.Environment) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	return s.withLockedEnvironment(ctx, s.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		others, err := s.m.others(s.saved, false)
		if err != nil {
			return known(err)
		}
		kept := s.saved.Profile.Persistent || others
		if env == nil && kept {
			// Its worker may still run processes: it has to be reached to end them.
			env, err = s.reach(ctx, backend, b)
			if err != nil {
				return err
			}
		}
		if env != nil {
			if err := s.shut(ctx, env); err != nil {
				return err
			}
		}
		if kept {
			return nil
		}
		return s.remove(ctx, backend, b, false)
	})
}

// withLockedEnvironment runs f when there is an environment, while nobody else
// makes or removes it. One that is not known to have been created, and that no
// other session is bound to, is forgotten after unfinished has succeeded.
func (s *live) withLockedEnvironment(ctx context.Context, unfinished func(context.Context) error, f func(b backends.Binding, backend backends.Backend) error) (err error) {
	lock, err := s.m.store.LockEnvironment(ctx, s.saved.Environment)
	if err != nil {
		return known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	is, err := s.m.store.Provisioned(s.saved.Environment)
	if err != nil {
		return known(err)
	}
	if !is {
		others, err := s.m.others(s.saved, true)
		if err != nil || others {
			return known(err)
		}
		if err := unfinished(ctx); err != nil {
			return err
		}
		return known(s.m.store.RemoveEnvironment(s.saved.Environment))
	}
	backend, err := s.backend()
	if err != nil {
		return err
	}
	b, err := s.m.binding(s.saved)
	if err != nil {
		return err
	}
	return f(b, backend)
}

// removeUnfinished removes what there may be of an environment whose creation was
// begun and never ended: a service was killed in the middle of it.
func (s *live) removeUnfinished(ctx context.Context) error {
	begun, err := s.m.store.Described(s.saved.Environment)
	if err != nil || !begun {
		return known(err)
	}
	backend, err := s.backend()
	if err != nil {
		return err
	}
	b, err := s.m.binding(s.saved)
	if err != nil {
		return err
	}
	return known(backend.Remove(ctx, b))
}

// reach connects to an environment that is only opened to be ended. One that is
// gone is nil and no error.
func (s *live) reach(ctx context.Context, backend backends.Backend, b backends.Binding) (backends.Environment, error) {
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
func (s *live) shut(ctx context.Context, env backends.Environment) error {
	ctx, cancel := context.WithTimeout(ctx, s.saved.Profile.ShutdownTimeout)
	defer cancel()
	// What is gone already needs no end.
	if err := env.Shutdown(ctx); err != nil && tool.KindOf(err) != tool.EnvironmentLost {
		return known(err)
	}
	s.mu.Lock()
	s.env, s.tools = nil, nil
	s.mu.Unlock()
	err := env.Detach(ctx)
	s.stopPump(ctx)
	return known(err)
}

// remove removes the environment and everything that is known about it. A session
// that is forgotten next may be forgotten before.
func (s *live) remove(ctx context.Context, backend backends.Backend, b backends.Binding, forget bool) error {
	if err := backend.Remove(ctx, b); err != nil {
		return known(err)
	}
	// Saved before the mark goes: a crash in between must not make an empty
	// environment of a removed one.
	s.mu.Lock()
	s.saved.Removed = true
	saved := s.saved
	s.mu.Unlock()
	err := s.m.store.Save(saved)
	if forget && tool.IsDiskFull(err) {
		// Nothing can be saved. What is forgotten instead is not made anew either,
		// and makes room.
		err = s.m.store.Forget(s.id)
	}
	if err != nil {
		return known(err)
	}
	return known(s.m.store.RemoveEnvironment(s.saved.Environment))
}

// others reports whether another session is bound to the same environment;
// closed ones count when they can be resumed, or with all.
func (m *Manager) others(saved store.Session, closed bool) (bool, error) {
	if !saved.Profile.Shared {
		return false, nil
	}
	list, err := m.store.List()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(list, func(l store.Listed) bool {
		// One that cannot be read may be bound to this environment too: nothing
		// is removed under it.
		return l.ID != saved.ID && (l.Err != nil || l.Environment == saved.Environment && !l.Removed && (closed || !l.Closed))
	}), nil
}

// Delete closes the session and removes its environment, persistent or not,
// unless another session is bound to it, and forgets the session. With force an
// environment that cannot be reached is forgotten too; left then says what may
// still be there.
func (m *Manager) Delete(ctx context.Context, id string, force bool) (left string, err error) {
	l, release, err := m.take(ctx, id)
	if err != nil {
		return "", err
	}
	defer release()
	env, err := l.finish(ctx, tool.Errorf(tool.Cancelled, "the session %q was deleted", id))
	switch {
	case err != nil:
	case l.saved.Removed:
		err = l.forgetRemoved(ctx)
	default:
		err = l.deleteEnvironment(ctx, env)
	}
	if err != nil {
		if !force {
			return "", m.keep(ctx, l, err)
		}
		err = l.removeAnyway(ctx, err)
	}
	if err != nil {
		left = fmt.Sprintf("The %s environment %s of the session %q could not be removed and may still exist: %v",
			l.saved.Profile.Backend, l.saved.Environment, id, err)
		if err := l.forgetEnvironment(ctx); err != nil {
			return left, known(err)
		}
	}
	l.mu.Lock()
	l.become(StateClosed, nil)
	l.mu.Unlock()
	m.remove(l)
	return left, known(errors.Join(m.store.Forget(id), l.lock.Release()))
}

// deleteEnvironment removes the environment unless another session is bound to
// it, which then only loses this session's part.
func (s *live) deleteEnvironment(ctx context.Context, env backends.Environment) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	return s.withLockedEnvironment(ctx, s.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		return s.endPart(ctx, env, b, backend, s.saved.Profile.Persistent)
	})
}

// endPart ends the session's part of its environment, and removes that unless
// another session is bound to it; closed ones count with all. The environment is
// locked.
func (s *live) endPart(ctx context.Context, env backends.Environment, b backends.Binding, backend backends.Backend, all bool) error {
	others, err := s.m.others(s.saved, all)
	if err != nil {
		return known(err)
	}
	if env == nil && others {
		env, err = s.reach(ctx, backend, b)
		if err != nil {
			return err
		}
	}
	if env != nil {
		if err := s.shut(ctx, env); err != nil {
			return err
		}
	}
	if others {
		return nil
	}
	return s.remove(ctx, backend, b, true)
}

// forgetRemoved forgets an environment that was removed, where a service was killed
// before it had done so.
func (s *live) forgetRemoved(ctx context.Context) (err error) {
	lock, err := s.m.store.LockEnvironment(ctx, s.saved.Environment)
	if err != nil {
		return known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	// A shared one may have been made anew by others.
	others, err := s.m.others(s.saved, true)
	if err == nil && !others {
		err = s.m.store.RemoveEnvironment(s.saved.Environment)
	}
	return known(err)
}

// removeAnyway removes an environment in which something could not be ended, and
// that with it, unless another session is bound to it. It returns why something
// may be left: the cause, and what the removal failed of.
func (s *live) removeAnyway(ctx context.Context, cause error) error {
	s.mu.Lock()
	env := s.env
	s.env = nil
	s.mu.Unlock()
	if env != nil {
		if err := env.Detach(ctx); err != nil {
			s.m.log.Warn("an environment that is removed could not be detached", "session", s.id, "error", err)
		}
	}
	left := cause
	err := s.withLockedEnvironment(ctx, s.removeUnfinished, func(b backends.Binding, backend backends.Backend) error {
		others, err := s.m.others(s.saved, s.saved.Profile.Persistent)
		if err != nil || others {
			return err
		}
		if err := s.remove(ctx, backend, b, true); err != nil {
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
func (s *live) forgetEnvironment(ctx context.Context) error {
	s.mu.Lock()
	env := s.env
	s.env = nil
	s.mu.Unlock()
	if env != nil {
		if err := env.Detach(ctx); err != nil {
			s.m.log.Warn("an environment that is forgotten could not be detached", "session", s.id, "error", err)
		}
	}
	s.stopPump(ctx)
	others, err := s.m.others(s.saved, true)
	if err != nil || others {
		return err
	}
	return s.m.store.RemoveEnvironment(s.saved.Environment)
}
