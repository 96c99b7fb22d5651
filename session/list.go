package session

import (
	"context"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/store"
)

// Get returns the session, whether this service has it open or not.
func (m *Manager) Get(_ context.Context, id string) (Session, error) {
	if l := m.find(id); l != nil {
		return l.current(), nil
	}
	saved, err := m.load(id)
	if err != nil {
		return Session{}, err
	}
	s := m.describeListed(store.Listed{ID: id, Session: saved})
	m.follow.note(s)
	return s, nil
}

// List returns the sessions of the state directory, newest use first, those of
// other services included. A binding that cannot be read is listed as failed. A
// state that is none fails with [tool.InvalidParams].
func (m *Manager) List(_ context.Context, f Filter) ([]Session, error) {
	if f.State != "" && !f.State.valid() {
		return nil, tool.Errorf(tool.InvalidParams, "there is no state %q", f.State).WithPath("state").
			WithHint("the states are bound, connecting, ready, disconnected, closed and failed")
	}
	list, err := m.store.List()
	if err != nil {
		return nil, known(err)
	}
	var all []Session
	for _, entry := range list {
		var s Session
		if l := m.find(entry.ID); l != nil {
			s = l.current()
		} else {
			s = m.describeListed(entry)
		}
		if f.matches(s) {
			all = append(all, s)
		}
	}
	m.follow.missed(list)
	for _, s := range all { // at last, so that hardly anything is told between this and the answer
		m.follow.note(s)
	}
	slices.SortFunc(all, func(a, b Session) int {
		if c := b.LastUsedAt.Compare(a.LastUsedAt); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, nil
}

func (f Filter) matches(s Session) bool {
	if f.State != "" && s.State != f.State {
		return false
	}
	for name, v := range f.Labels {
		if got, ok := s.Labels[name]; !ok || got != v {
			return false
		}
	}
	return true
}
