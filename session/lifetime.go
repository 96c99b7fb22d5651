package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// dropBudget bounds how long a session that could not be opened is cleaned up
// after, which may mean to remove an environment.
const dropBudget = 30 * time.Second

// keepBudget bounds how long an environment is let go of, with requests that may not end.
const keepBudget = 10 * time.Second

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
	l, err := m.own(ctx, id)
	if err != nil {
		release()
		return nil, nil, err
	}
	return l, release, nil
}

// own is take without the claim, which the caller has.
func (m *Manager) own(ctx context.Context, id string) (*live, error) {
	if l := m.find(id); l != nil {
		return l, nil
	}
	if _, err := m.load(id); err != nil {
		return nil, err
	}
	lock, err := m.store.LockSession(ctx, id)
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
	ctx, cancel := context.WithTimeout(ctx, keepBudget)
	defer cancel()
	err := l.detachAll(ctx)
	l.stopPumps(ctx)
	if err := errors.Join(err, l.leave()); err != nil {
		m.log.Warn("a session was not given up cleanly", "session", l.id, "error", err)
	}
	return known(cause)
}

// closePlaces ends the session's part of its environments, the main one last, and
// removes those that are not to be kept. One that cannot be ended keeps none of the
// others; what was ended is known, so that closing again does what is left.
func (s *live) closePlaces(ctx context.Context) error {
	if err := s.quiet(ctx); err != nil {
		return err
	}
	var left []unended
	for _, p := range slices.Backward(s.places()) {
		if err := p.close(ctx); err != nil {
			left = append(left, unended{p, err})
		}
	}
	return s.unended(left, "closed")
}

// unended is a place that could not be ended, and why.
type unended struct {
	p   *place
	err error
}

func (u unended) String() string {
	return fmt.Sprintf("the %s environment %s of the profile %q: %v", u.p.saved.Profile.Backend, u.p.identity(), u.p.saved.Profile.Name, u.err)
}

// unended is the error of places that could not be ended; nil for none. How says what
// was to become of them.
func (s *live) unended(left []unended, how string) error {
	if len(left) == 0 {
		return nil
	}
	first := left[0]
	all := len(s.places())
	if all == 1 {
		return at(first.p.saved.Profile, first.err)
	}
	told := &tool.Error{Kind: tool.KindOf(first.err)}
	if e, ok := errors.AsType[*tool.Error](first.err); ok {
		told.Path, told.Hint = e.Path, e.Hint
	}
	whats, causes := make([]string, len(left)), make([]error, len(left))
	for i, u := range left {
		whats[i], causes[i] = u.String(), u.err
	}
	told.Message = fmt.Sprintf("%d of the %d environments of the session %q could not be %s: %s", len(left), all, s.id, how, strings.Join(whats, "; "))
	told.Err = errors.Join(causes...)
	again := "close it again, which does what is left; session/delete with force forgets what cannot be reached."
	if how == "deleted" {
		again = "delete it again, which does what is left; with force, what cannot be reached is forgotten, and backend/prune removes it once it can be."
	}
	if told.Hint != "" && !strings.HasSuffix(told.Hint, ".") {
		told.Hint += "."
	}
	told.Hint = strings.TrimSpace(told.Hint + " The session is kept: " + again)
	return at(first.p.saved.Profile, told)
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
// unless another session is bound to them, and forgets the session. One that stays and
// in which nothing of the session runs any more need not be reached. With force one
// that cannot be reached is forgotten in any case. Left says what may still be there.
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
	var (
		remains []string
		kept    []unended
		errs    []error
	)
	for _, p := range slices.Backward(l.places()) {
		err := unquiet
		if err == nil {
			err = p.delete(ctx, true)
		}
		if err != nil && force {
			err = p.removeAnyway(ctx, err)
		}
		switch {
		case err == nil:
			if p.unforgotten != nil {
				remains = append(remains, fmt.Sprintf("The %s environment %s, which stays, may keep what it has of the session %q, such as the output of processes, until it is removed: %v",
					p.saved.Profile.Backend, p.identity(), l.id, p.unforgotten))
			}
		case !force:
			kept = append(kept, unended{p, err})
		default:
			remains = append(remains, fmt.Sprintf("The %s environment %s of the session %q could not be removed and may still exist: %v",
				p.saved.Profile.Backend, p.identity(), l.id, err))
			errs = append(errs, p.forgetEnvironment(ctx))
		}
	}
	if err := errors.Join(l.unended(kept, "deleted"), errors.Join(errs...)); err != nil {
		return strings.Join(remains, "\n"), m.keep(ctx, l, err)
	}
	l.mu.Lock()
	l.become(StateClosed, nil)
	l.mu.Unlock()
	m.remove(l)
	err = known(errors.Join(l.forgetAll(ctx), l.lock.Release()))
	if err == nil {
		m.follow.removed(l.id)
	}
	l.releasePlugins(ctx)
	return strings.Join(remains, "\n"), err
}
