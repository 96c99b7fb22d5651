package session

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

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
	lock, err := m.store.LockSession(ctx, r.NewSessionID)
	if err != nil {
		return Session{}, busySession(r.NewSessionID, err)
	}
	if _, err := m.store.Load(r.NewSessionID); !errors.Is(err, store.ErrNotFound) {
		return Session{}, known(errors.Join(taken(r.NewSessionID), lock.Release()))
	}
	saved := m.branch(parent, r.NewSessionID)
	err = m.passUsed(parent, saved.ID)
	if err == nil {
		err = m.saveBeside(ctx, parent, saved)
	}
	if err != nil {
		return Session{}, known(errors.Join(err, m.store.Forget(saved.ID), lock.Release()))
	}
	return m.takeUp(ctx, saved, lock, false, p)
}

// passUsed gives a new session what its parent has used until now of its rates and
// budgets, before the session is known, so that a fork is no way to a fresh budget.
func (m *Manager) passUsed(parent store.Session, id string) error {
	if len(parent.Guard) == 0 {
		return nil
	}
	used, err := m.used(parent.ID)
	if err != nil {
		return err
	}
	return m.store.SaveUsed(id, used)
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
	for _, p := range saved.All() {
		if _, ok := m.o.Registry.Get(p.Profile.Backend); !ok {
			return saved, notBuilt(p.Profile.Backend)
		}
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
		ID: id, ParentID: parent.ID, Workspace: parent.Workspace, Folder: parent.Folder,
		Place: m.branchPlace(parent.Place, id), Overrides: slices.Clone(parent.Overrides),
		Limits: slices.Clone(parent.Limits), ToolLimits: parent.ToolLimits, JobLimits: parent.JobLimits,
		Guard: slices.Clone(parent.Guard), Plugins: slices.Clone(parent.Plugins),
		Labels: maps.Clone(parent.Labels), CreatedAt: now, LastUsedAt: now,
	}
	for _, p := range parent.Places {
		if p.OneOff {
			continue
		}
		s.Places = append(s.Places, m.branchPlace(p, id))
	}
	return s
}

// branchPlace is a place like one of the parent's: the same environment where that is
// shared.
func (m *Manager) branchPlace(parent store.Place, id string) store.Place {
	p := parent
	p.Root, p.Removed, p.Ended, p.Incarnation, p.Packs = "", false, false, "", slices.Clone(parent.Packs)
	if !p.Profile.Shared {
		p.Environment = p.Profile.Identity(m.store.ID(), id)
	}
	return p
}

// saveBeside saves a session. Where it shares environments of its parent nobody
// removes them meanwhile, and what was removed before is lost to it as well: it
// asked for what its parent has.
func (m *Manager) saveBeside(ctx context.Context, parent, saved store.Session) (err error) {
	var shared []store.Place
	for _, p := range saved.All() {
		if p.Profile.Shared {
			shared = append(shared, p)
		}
	}
	if len(shared) == 0 {
		return m.store.Save(saved)
	}
	// In one order everywhere, so that two forks never wait for each other.
	slices.SortFunc(shared, func(a, b store.Place) int { return strings.Compare(a.Environment, b.Environment) })
	for _, p := range shared {
		lock, failure := m.store.LockEnvironment(ctx, p.Environment)
		if failure != nil {
			return known(failure)
		}
		defer func() { err = errors.Join(err, lock.Release()) }()
	}
	now, err := m.store.Load(parent.ID)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return errors.Join(unknownSession(parent.ID), m.dropEmpty(saved.ID, shared))
	case err != nil:
		return known(err)
	case saved.Profile.Shared && now.Removed && !onHost(now.Folder, now.Profile):
		return errors.Join(removedWith(parent.ID), m.dropEmpty(saved.ID, shared))
	}
	inherit(&saved.Place, now)
	for i := range saved.Places {
		inherit(&saved.Places[i], now)
	}
	return m.store.Save(saved)
}

// inherit notes what the parent knows of an environment that both share.
func inherit(p *store.Place, parent store.Session) {
	if !p.Profile.Shared {
		return
	}
	if was, ok := parent.Bound(p.Environment); ok {
		p.Incarnation, p.Removed = was.Incarnation, was.Removed && !onHost(parent.Folder, was.Profile)
	}
}

// dropEmpty removes the directories that locking environments has made, where there
// are none. The caller holds the locks.
func (m *Manager) dropEmpty(session string, list []store.Place) error {
	var errs []error
	for _, p := range list {
		is, err := m.store.Provisioned(p.Environment)
		if err == nil && !is {
			var others bool
			if others, err = m.others(session, p, true); err == nil && !others {
				err = m.store.RemoveEnvironment(p.Environment)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
