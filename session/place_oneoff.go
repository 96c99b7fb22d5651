package session

import (
	"context"
	"slices"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/session/store"
)

// addOneOff gives the session a place for one use. It is saved with the session
// before anything is created, so that a service that is killed leaves nothing that
// nobody knows of.
func (s *live) addOneOff(p profile.Profile) (*place, error) {
	p = p.OneOff()
	one := newPlace(s, store.Place{
		Profile: p, OneOff: true,
		// One for each use: two at a time do not share it.
		Environment: p.Identity(s.m.store.ID(), s.id+"/"+newID()),
	})
	if err := s.join(one); err != nil {
		return nil, err
	}
	if err := s.save(); err != nil {
		s.forget(one)
		return nil, known(err)
	}
	return one, nil
}

// join makes a place one of the session's, unless that is over.
func (s *live) join(one *place) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return s.gone()
	}
	s.beside = append(s.beside, one)
	return nil
}

// forget takes a place out of the session.
func (s *live) forget(one *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beside = slices.DeleteFunc(slices.Clone(s.beside), func(p *place) bool { return p == one })
}

// removeOneOff removes the environment and the place. What cannot be removed stays
// with the session, and goes with it or when it is resumed.
func (s *live) removeOneOff(ctx context.Context, one *place) {
	ctx, cancel := context.WithTimeout(ctx, dropBudget)
	defer cancel()
	err := one.delete(ctx, false)
	if err == nil {
		s.forget(one)
		err = s.save()
	}
	if err == nil {
		err = s.write(func() error { return s.m.store.ForgetPlaceToken(s.id, one.identity()) })
	}
	if err != nil {
		s.m.log.Warn("an environment that was made for one job is still there", "session", s.id, "environment", one.identity(), "error", err)
	}
}

// reap removes the places for one use that a killed service has left.
func (s *live) reap() {
	for _, p := range s.places() {
		if !p.saved.OneOff {
			continue
		}
		s.m.work.Go(func() {
			// As a request, so that the session is not given up meanwhile.
			ctx, done, err := s.begin(s.m.ctx)
			if err != nil {
				return
			}
			defer done()
			s.removeOneOff(ctx, p)
		})
	}
}
