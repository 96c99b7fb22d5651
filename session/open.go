package session

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// Limits of labels: they are for finding sessions, not for keeping data.
const (
	maxLabels     = 32
	maxLabelBytes = 256
)

// Open makes a session, or resumes the one of that id, and opens its
// environment unless the request defers that. The session's choice and whole
// profile are saved before anything is created. Resumed says that the session
// existed. A new session whose environment cannot be made is forgotten again.
func (m *Manager) Open(ctx context.Context, r OpenRequest, p backends.Progress) (s Session, resumed bool, err error) {
	if r.SessionID == "" {
		r.SessionID = store.NewID()
	}
	if err := store.CheckID(r.SessionID); err != nil {
		return Session{}, false, invalid("sessionId", "the id %q cannot be a session's: it %w", r.SessionID, err)
	}
	if err := checkLabels(r.Labels); err != nil {
		return Session{}, false, err
	}
	release, err := m.claim(ctx, r.SessionID)
	if err != nil {
		return Session{}, false, err
	}
	defer release()
	if l := m.find(r.SessionID); l != nil {
		s, err := m.reopen(ctx, l, r, p)
		return s, true, err
	}
	saved, err := m.store.Load(r.SessionID)
	if errors.Is(err, store.ErrNotFound) {
		return m.create(ctx, r, p)
	}
	if err != nil {
		return Session{}, false, known(err)
	}
	s, err = m.resume(ctx, saved, r, p)
	return s, true, err
}

func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("labels", "a session has at most %d labels", maxLabels)
	}
	for name, v := range labels {
		if name == "" || len(name) > maxLabelBytes || len(v) > maxLabelBytes {
			return invalid("labels."+name, "names and values of labels have at most %d bytes", maxLabelBytes)
		}
	}
	return nil
}

// create makes a new session.
func (m *Manager) create(ctx context.Context, r OpenRequest, p backends.Progress) (Session, bool, error) {
	saved, err := m.plan(ctx, r)
	if err != nil {
		return Session{}, false, err
	}
	lock, err := m.store.LockSession(ctx, r.SessionID)
	if err != nil {
		return Session{}, false, busySession(r.SessionID, err)
	}
	if other, err := m.store.Load(r.SessionID); !errors.Is(err, store.ErrNotFound) {
		// Another service made and left it in this moment.
		if err := errors.Join(err, lock.Release()); err != nil {
			return Session{}, false, known(err)
		}
		s, err := m.resume(ctx, other, r, p)
		return s, true, err
	}
	if err := m.store.Save(saved); err != nil {
		return Session{}, false, known(errors.Join(err, m.store.Forget(saved.ID), lock.Release()))
	}
	s, err := m.takeUp(ctx, saved, lock, r.Deferred, p)
	return s, false, err
}

// takeUp makes a new session that is saved one of this service's, and opens its
// environment unless that is deferred.
func (m *Manager) takeUp(ctx context.Context, saved store.Session, lock *store.Lock, deferred bool, p backends.Progress) (Session, error) {
	l := m.newLive(saved, lock)
	if err := m.add(l); err != nil {
		return Session{}, errors.Join(err, m.store.Forget(saved.ID), lock.Release())
	}
	m.expireArtifacts()
	m.follow.tell(l.current())
	if deferred {
		return l.current(), nil
	}
	if _, err := l.main.environment(ctx, p); err != nil {
		return Session{}, m.undo(l, err)
	}
	return l.current(), nil
}

// undo forgets a new session whose environment could not be made. One whose
// environment exists, since only its answer was lost, is kept, and so is one whose
// part of a shared environment could not be ended: a worker there would know
// neither the token nor the processes of another session of its id.
func (m *Manager) undo(l *live, cause error) error {
	is, err := m.store.Provisioned(l.main.identity())
	if err != nil || is && !l.main.saved.Profile.Shared {
		m.log.Warn("a new session is kept, since its environment exists", "session", l.id, "error", errors.Join(cause, err))
		return cause
	}
	if err := l.finish(context.Background(), errors.New("the environment could not be opened")); err != nil {
		return err
	}
	if err := l.drop(); err != nil {
		m.log.Warn("a new session is kept, since its part of the environment could not be ended", "session", l.id, "error", errors.Join(cause, err))
		return m.keep(context.Background(), l, cause)
	}
	l.mu.Lock()
	l.become(StateClosed, cause)
	l.mu.Unlock()
	m.remove(l)
	ctx, cancel := context.WithTimeout(context.Background(), dropBudget)
	defer cancel()
	err = errors.Join(l.forgetAll(ctx), l.lock.Release())
	if err != nil {
		m.log.Warn("a session that could not be opened was not wholly forgotten", "session", l.id, "error", err)
		return cause
	}
	m.follow.removed(l.id)
	return cause
}

// drop removes what there is of a new session's environments, unless another
// session is bound to them; then it ends the worker that the opening may have
// started there. A shared one may be provisioned and have lost its last other
// session in this moment.
func (s *live) drop() error {
	ctx, cancel := context.WithTimeout(context.Background(), dropBudget)
	defer cancel()
	// A creation that failed has left nothing.
	nothing := func(context.Context) error { return nil }
	var errs []error
	for _, p := range slices.Backward(s.places()) {
		env := p.current()
		errs = append(errs, p.withLockedEnvironment(ctx, nothing, func(b backends.Binding, backend backends.Backend) error {
			return p.endPart(ctx, env, b, backend, ending{closed: true, forget: true})
		}))
	}
	return errors.Join(errs...)
}

// resume opens a session of the state directory as it was saved.
func (m *Manager) resume(ctx context.Context, saved store.Session, r OpenRequest, p backends.Progress) (Session, error) {
	if err := m.sameSession(saved, r); err != nil {
		return Session{}, err
	}
	lock, err := m.store.LockSession(ctx, saved.ID)
	if err != nil {
		return Session{}, busySession(saved.ID, err)
	}
	// Whoever owned the session until now may have changed or deleted it.
	saved, err = m.store.Load(saved.ID)
	if errors.Is(err, store.ErrNotFound) {
		err = errors.Join(unknownSession(r.SessionID), m.store.Forget(r.SessionID))
	}
	if err == nil && saved.Removed && !onHost(saved.Folder, saved.Profile) {
		err = removedWith(saved.ID)
	}
	if err != nil {
		return Session{}, known(errors.Join(err, lock.Release()))
	}
	saved.Closed, saved.Removed, saved.Ended, saved.Failure = false, false, false, nil
	for i, p := range saved.Places {
		saved.Places[i].Ended = false
		// Another one is missed when something wants to run in it.
		saved.Places[i].Removed = p.Removed && !onHost(saved.Folder, p.Profile)
	}
	saved.LastUsedAt = m.o.Now()
	if r.Labels != nil {
		saved.Labels = maps.Clone(r.Labels)
	}
	if err := m.store.Save(saved); err != nil {
		return Session{}, known(errors.Join(err, lock.Release()))
	}
	l := m.newLive(saved, lock)
	if err := m.add(l); err != nil {
		return Session{}, known(errors.Join(err, lock.Release()))
	}
	m.follow.tell(l.current())
	l.reap()
	if r.Deferred {
		return l.current(), nil
	}
	if _, err := l.main.environment(ctx, p); err != nil {
		// It stays resumable, by this service or another.
		settling := l.finish(ctx, err)
		if err := errors.Join(settling, l.leave()); err != nil {
			m.log.Warn("a session was not given up cleanly", "session", l.id, "error", err)
		}
		return Session{}, err
	}
	return l.current(), nil
}

// removedWith is the error of a session whose environment went when it, or the
// last one that shared it, was closed, or at the idle limit.
func removedWith(id string) error {
	return tool.Errorf(tool.EnvironmentLost, "the environment that the session %q was in was removed, and what was in it", id).
		WithHint("Open a new session; a persistent profile keeps its files when a session is closed.")
}

// reopen is Open for a session that this service has open.
func (m *Manager) reopen(ctx context.Context, l *live, r OpenRequest, p backends.Progress) (Session, error) {
	l.mu.Lock()
	saved := l.record()
	l.mu.Unlock()
	if err := m.sameSession(saved, r); err != nil {
		return Session{}, err
	}
	if r.Labels != nil {
		l.mu.Lock()
		l.saved.Labels = maps.Clone(r.Labels)
		l.mu.Unlock()
		if err := l.save(); err != nil {
			return Session{}, known(err)
		}
	}
	if !r.Deferred {
		if err := l.dropFailed(ctx); err != nil {
			return Session{}, known(err)
		}
		if _, err := l.main.environment(ctx, p); err != nil {
			return Session{}, err
		}
	}
	return l.current(), nil
}

// dropFailed lets go of environments that will not come back, so that the next
// use opens them anew or says again what is wrong.
func (s *live) dropFailed(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keepBudget)
	defer cancel()
	var errs []error
	for _, p := range s.places() {
		s.mu.Lock()
		env := p.env
		failed := p.state == StateFailed && env != nil
		if failed {
			p.env, p.tools = nil, nil
		}
		s.mu.Unlock()
		if failed {
			errs = append(errs, env.Detach(ctx))
			p.stopPump(ctx)
		}
	}
	return errors.Join(errs...)
}

// sameSession refuses a request that asks for something else than what the
// session is bound to.
func (m *Manager) sameSession(saved store.Session, r OpenRequest) error {
	for _, name := range []string{r.Profile, r.Constraints.ownProfile()} {
		if name != "" && name != saved.Profile.Name {
			return invalid("profile", "the session %q is bound to the profile %q and cannot change to %q", saved.ID, saved.Profile.Name, name).
				WithHint("Open a new session for the other profile.")
		}
	}
	if r.Workspace != "" {
		uri, _, err := workspace(r.Workspace)
		if err != nil {
			return err
		}
		if uri != saved.Workspace {
			return invalid("workspace", "the session %q works in %s and cannot change to %s", saved.ID, folderName(saved.Workspace), uri)
		}
	}
	if !r.Constraints.empty() {
		limits, forTools, forJobs, err := r.Constraints.forSession("constraints")
		if err != nil {
			return err
		}
		p, err := saved.Profile.Constrain(limits)
		if err != nil || !reflect.DeepEqual(p, saved.Profile) || !same(forTools, saved.ToolLimits) || !same(forJobs, saved.JobLimits) {
			return invalid("constraints", "the constraints of the session %q were fixed when it was made", saved.ID)
		}
	}
	return nil
}

// same reports whether limits that are asked for again are those that were saved.
func same(asked, saved *store.Limits) bool {
	return asked == nil || saved != nil && *asked == *saved
}

func folderName(uri string) string {
	if uri == "" {
		return "no folder"
	}
	return uri
}
