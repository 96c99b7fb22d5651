package session

import (
	"context"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session/guard"
	"github.com/caisson-dev/caisson/session/store"
)

// place is one environment that a session has: where some of its tools run. A
// session has a main one, whose state is the session's, and one for each other
// profile that its overrides name. It is opened at the first use.
type place struct {
	s *live

	processes processes

	// lists are the commands that the place's profile allows and denies.
	lists func() (*guard.Lists, error)

	// marked says that the environment was removed while its record had to stay, since
	// the disk was full: it goes when the session has been forgotten. Only a session's
	// end sets it.
	marked bool

	// unforgotten is why the environment, which stays, was not told to forget the session.
	// Only a session's end sets it.
	unforgotten error

	// The members below are guarded by the session's mu, which also orders what the
	// sink is told. Of saved, the profile and the identity never change and may be
	// read without it.
	saved   store.Place
	state   State
	err     error
	env     backends.Environment // nil until it was opened
	tools   []tool.Description   // of env; nil until asked for
	opening *opening
	pump    *pump
}

func newPlace(s *live, saved store.Place) *place {
	p := &place{s: s, saved: saved, state: StateBound}
	p.processes.init()
	p.lists = sync.OnceValues(func() (*guard.Lists, error) { return listsOf(saved.Profile) })
	return p
}

// profile is the place's profile as the session saved it.
func (p *place) profile() profile.Profile { return p.saved.Profile }

// identity is that of the place's environment.
func (p *place) identity() string { return p.saved.Environment }

// ref names the place's environment to the editor.
func (p *place) ref() EnvironmentRef {
	return EnvironmentRef{Profile: p.saved.Profile.Name, Backend: p.saved.Profile.Backend, ID: p.saved.Environment}
}

// main reports whether the place is the session's main one.
func (p *place) main() bool { return p == p.s.main }

// become changes the place's state, and the session's with it where the place is
// the main one. The caller holds mu.
func (p *place) become(state State, err error) {
	p.state, p.err = state, err
	if p.main() {
		p.s.become(state, err)
	}
}

// current is the environment when it is open, else nil.
func (p *place) current() backends.Environment {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	return p.env
}

// release gives the environment up for the caller to end; nil when none is open.
func (p *place) release() backends.Environment {
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	env := p.env
	p.env, p.tools = nil, nil
	return env
}

// descriptions asks the environment once for each connection.
func (p *place) descriptions(ctx context.Context, env backends.Environment) ([]tool.Description, error) {
	p.s.mu.Lock()
	list := p.tools
	p.s.mu.Unlock()
	if list != nil {
		return list, nil
	}
	list, err := env.Tools(ctx)
	if err != nil {
		return nil, known(err)
	}
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.env == env {
		p.tools = list
	}
	return list, nil
}

// places are all that the session has, the main one first.
func (s *live) places() []*place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]*place{s.main}, s.beside...)
}

// placeOn is the one of the places on the profile of this name, nil for none. One for a
// single use is nobody else's.
func placeOn(among []*place, profile string) *place {
	i := slices.IndexFunc(among, func(p *place) bool { return !p.saved.OneOff && p.saved.Profile.Name == profile })
	if i < 0 {
		return nil
	}
	return among[i]
}

// lasting are the places but those for one use, and those where nothing but
// registered tools runs.
func (s *live) lasting() []*place {
	return slices.DeleteFunc(s.places(), func(p *place) bool { return p.saved.OneOff || p.saved.Plugins })
}
