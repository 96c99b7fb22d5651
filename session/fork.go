package session

import (
	"context"
	"errors"
	"maps"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/session/store"
)

// ForkRequest asks for a session like another one.
type ForkRequest struct {
	// SessionID is the session that is forked, open in this service or not.
	SessionID string
	// NewSessionID names the new session; "" makes an id.
	NewSessionID string
}

// Fork makes a session with the profile that another one was bound to, whatever
// the configuration says now, on the same folder and with the same labels. It has
// an environment of its own, into which nothing is copied, unless the profile is
// shared. The other session is left as it is.
func (m *Manager) Fork(ctx context.Context, r ForkRequest, p backends.Progress) (Session, error) {
	parent, err := m.parent(r.SessionID)
	if err != nil {
		return Session{}, err
	}
	if r.NewSessionID == "" {
		r.NewSessionID = store.NewID()
	}
	if err := store.CheckID(r.NewSessionID); err != nil {
		return Session{}, invalid("newSessionId", "the id %q cannot be a session's: it %w", r.NewSessionID, err)
	}
	release, err := m.claim(ctx, r.NewSessionID)
	if err != nil {
		return Session{}, err
	}
	defer release()
	if m.find(r.NewSessionID) != nil {
		return Session{}, taken(r.NewSessionID)
	}
	lock, err := m.store.LockSession(r.NewSessionID)
	if err != nil {
		return Session{}, busySession(r.NewSessionID, err)
	}
	if _, err := m.store.Load(r.NewSessionID); !errors.Is(err, store.ErrNotFound) {
		return Session{}, known(errors.Join(taken(r.NewSessionID), lock.Release()))
	}
	saved := m.branch(parent, r.NewSessionID)
	if err := m.saveBeside(ctx, parent, saved); err != nil {
		return Session{}, known(errors.Join(err, m.store.Forget(saved.ID), lock.Release()))
	}
	return m.takeUp(ctx, saved, lock, false, p)
}

func taken(id string) error {
	return invalid("newSessionId", "there is a session %q already", id).WithHint("Leave newSessionId out, or open that session.")
}

// parent finds what is saved of a session that can be forked.
func (m *Manager) parent(id string) (store.Session, error) {
	saved, err := m.load(id)
	if err != nil {
		return saved, err
	}
	if _, ok := m.o.Registry.Get(saved.Profile.Backend); !ok {
		return saved, notBuilt(saved.Profile.Backend)
	}
	if saved.Folder != "" {
		if err := isFolder(saved.Folder); err != nil {
			return saved, invalid("sessionId", "the session %q cannot be forked: %w", id, err)
		}
	}
	return saved, nil
}

// branch is a new session like its parent.
func (m *Manager) branch(parent store.Session, id string) store.Session {
	now := m.o.Now()
	s := store.Session{
		ID: id, ParentID: parent.ID, Workspace: parent.Workspace, Folder: parent.Folder, Profile: parent.Profile,
		Environment: parent.Environment, Labels: maps.Clone(parent.Labels), CreatedAt: now, LastUsedAt: now,
	}
	if !s.Profile.Shared {
		s.Environment = s.Profile.Identity(m.store.ID(), id)
	}
	return s
}

// saveBeside saves a session. Where it shares its parent's environment nobody
// removes that meanwhile, and what was removed before is lost to it as well: it
// asked for what its parent has.
func (m *Manager) saveBeside(ctx context.Context, parent, saved store.Session) (err error) {
	if !saved.Profile.Shared {
		return m.store.Save(saved)
	}
	lock, err := m.store.LockEnvironment(ctx, saved.Environment)
	if err != nil {
		return known(err)
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	now, err := m.store.Load(parent.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errors.Join(unknownSession(parent.ID), m.dropEmpty(saved))
	case err != nil:
		return known(err)
	case now.Removed && !onHost(now):
		return errors.Join(removedWith(parent.ID), m.dropEmpty(saved))
	}
	saved.Incarnation = now.Incarnation
	return m.store.Save(saved)
}

// dropEmpty removes the directory that locking an environment has made, where
// there is none. The caller holds the lock.
func (m *Manager) dropEmpty(saved store.Session) error {
	is, err := m.store.Provisioned(saved.Environment)
	if err == nil && !is {
		var others bool
		if others, err = m.others(saved, true); err == nil && !others {
			err = m.store.RemoveEnvironment(saved.Environment)
		}
	}
	return err
}
