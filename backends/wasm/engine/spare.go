package engine

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
)

// spares are guests whose instances were made ahead, while nobody waited: one of each
// program that ran last, for the next run that sees the same of the world. To make the
// instance takes as long as many a tool takes to run.
//
// Each runs once, as every instance does. None of its code has run before: it is made
// without fuel, and a module of which something would run is not kept.
type spares struct {
	mu     sync.Mutex
	all    map[string]*spare // by spareKey
	made   uint64            // counts, as a clock for spare.made
	closed bool
	busy   sync.WaitGroup
}

// spare is one of them, or one that is being made, or a program that has none.
type spare struct {
	done    chan struct{} // closed when guest and err are set
	guest   *guest
	err     error
	release func() // of the module
	made    uint64
	unused  *time.Timer // drops it; set before done is closed
}

// spareKey is all that an instance is made with, and what is left out of it is told
// when it runs. It is empty for a run with directories of its own.
func spareKey(o Run) string {
	if len(o.Mounts) > 0 {
		return ""
	}
	o.Path, o.Fuel, o.Timeout, o.MaxOutput, o.Truncate = "", 0, 0, 0, false
	key, err := json.Marshal(o)
	if err != nil {
		return "" // it came as JSON
	}
	return string(key)
}

// take returns a guest that is used by nobody else, or nil. One that is being made is
// waited for, as long as ctx: to make another would take longer.
func (s *spares) take(ctx context.Context, key string) *guest {
	s.mu.Lock()
	one := s.all[key]
	s.mu.Unlock()
	if one == nil {
		return nil
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] != one || one.err != nil {
		return nil // somebody else has it, or nobody can
	}
	s.forget(key, one)
	one.release()
	return one.guest
}

// forget leaves one out. The caller holds mu, and has it now.
func (s *spares) forget(key string, one *spare) {
	delete(s.all, key)
	one.unused.Stop()
}

// keep makes a spare for the next run, unless there is one. It calls release when the
// module is not needed for it any more.
func (s *spares) keep(key string, release func(), instantiate func(context.Context, *guest) error, o Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || key == "" || s.all[key] != nil {
		release()
		return
	}
	for len(s.all) >= maxSpares {
		s.dropOldest()
	}
	s.made++
	one := &spare{done: make(chan struct{}), guest: newGuest(o), release: release, made: s.made}
	one.unused = time.AfterFunc(spareFor, func() { s.expire(key, one) })
	s.all[key] = one
	s.busy.Go(func() {
		defer close(one.done)
		if one.err = instantiate(context.Background(), one.guest); one.err != nil {
			// Its entry stays until it expires, so that no run tries in vain again.
			// The next run, which makes its own instance, tells why.
			one.guest.free()
		}
	})
}

// dropOldest makes room. The caller holds mu.
func (s *spares) dropOldest() {
	oldest := ""
	for key, one := range s.all {
		if oldest == "" || one.made < s.all[oldest].made {
			oldest = key
		}
	}
	s.drop(oldest, s.all[oldest])
}

// expire drops one that nobody has used for long.
func (s *spares) expire(key string, one *spare) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[key] == one {
		s.drop(key, one)
	}
}

// drop lets go of one. The caller holds mu.
func (s *spares) drop(key string, one *spare) {
	s.forget(key, one)
	s.busy.Go(func() {
		<-one.done
		if one.err == nil {
			one.guest.free()
		}
		one.release()
	})
}

// close drops all, and waits for it. None is made afterwards.
func (s *spares) close() {
	s.mu.Lock()
	s.closed = true
	for key, one := range s.all {
		s.drop(key, one)
	}
	s.mu.Unlock()
	s.busy.Wait()
}

// instantiator makes instances of a module for runs that see the same of the world.
func instantiator(r wazero.Runtime, code wazero.CompiledModule, o Run, environment map[string]string, mounts []mounted) func(context.Context, *guest) error {
	return func(ctx context.Context, g *guest) error {
		return g.instantiate(ctx, r, code, g.config(o, environment, mounts))
	}
}
