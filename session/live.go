package session

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/session/store"
)

// live is a session that this service owns. Its lock file is held as long as
// it is in the manager's map.
type live struct {
	m    *Manager
	id   string
	lock *store.Lock

	// life ends when the session ends in this service, and every call with it.
	life context.Context
	end  context.CancelCauseFunc

	// folder is the opened folder on the host, "" for none.
	folder string
	// main is the place of all that no override sends elsewhere; it never changes.
	main *place

	// routes say what goes to another place; broken is why they cannot.
	routes routes
	broken error

	// starts are the operations that start processes just now.
	starts claims

	// modules has the tools from modules; packed says that a place has packs.
	modules moduleTools
	packed  bool

	// admitted is what the guard knows of the session.
	admitted admitted

	// saving is held while what is known of the session is written, in the order in
	// which it came to be so. It is taken before mu.
	saving sync.Mutex
	left   bool // the session is not this service's any more; guarded by saving

	// mu guards the places too, and orders what the sink is told about the session.
	mu     sync.Mutex
	saved  store.Session // but what is saved of the places, which they have
	state  State         // the main place's, or closed
	err    error
	beside []*place        // the other places
	calls  map[string]bool // ids of calls in flight
	busy   sync.WaitGroup  // requests that use an environment
	over   bool            // closed, deleted or detached: nothing begins any more
}

func (m *Manager) newLive(saved store.Session, lock *store.Lock) *live {
	known := describe(saved)
	s := &live{m: m, id: saved.ID, lock: lock, folder: saved.Folder, state: known.State, err: known.Err, calls: map[string]bool{}}
	s.starts.busy = map[string]chan struct{}{}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.routes, s.broken = newRoutes(saved.Overrides, saved.All())
	s.main = newPlace(s, saved.Place)
	for _, p := range saved.Places {
		s.beside = append(s.beside, newPlace(s, p))
	}
	s.packed = slices.ContainsFunc(saved.All(), func(p store.Place) bool { return len(p.Packs) > 0 })
	saved.Place, saved.Places = store.Place{}, nil
	s.saved = saved
	return s
}

// record is what is saved of the session. The caller holds mu.
func (s *live) record() store.Session {
	r := s.saved
	r.Place = s.main.saved
	for _, p := range s.beside {
		r.Places = append(r.Places, p.saved)
	}
	return r
}

// save writes what changed.
func (s *live) save() error {
	return s.write(func() error {
		s.mu.Lock()
		r := s.record()
		s.mu.Unlock()
		return s.m.store.Save(r)
	})
}

// erase removes all that is saved of the session, and nothing is any more.
func (s *live) erase() error {
	s.admitted.mu.Lock()
	s.admitted.nothingDue()
	s.admitted.mu.Unlock()
	s.saving.Lock()
	defer s.saving.Unlock()
	s.left = true
	return s.m.store.Forget(s.id)
}

// errLeft is the error of what would be written of a session that was given up: it
// may be another service's by now.
var errLeft = errors.New("the session was given up before this could be saved")

// write writes something of the session, one at a time.
func (s *live) write(f func() error) error {
	s.saving.Lock()
	defer s.saving.Unlock()
	if s.left {
		return errLeft
	}
	return f()
}

// snapshot describes the session. The caller holds mu.
func (s *live) snapshot() Session {
	v := describe(s.record())
	v.State, v.Err = s.state, s.err
	return v
}

// describe is a session as it is known from disk.
func describe(b store.Session) Session {
	state, failure := StateBound, error(nil)
	switch {
	case b.Closed:
		state = StateClosed
	case b.Failure != nil:
		state, failure = StateFailed, restored(*b.Failure)
	}
	return Session{
		ID: b.ID, Workspace: b.Workspace, Profile: b.Profile.Name, Backend: b.Profile.Backend,
		EnvironmentID: b.Environment, Root: b.Root, State: state,
		Shared: b.Profile.Shared, Persistent: b.Profile.Persistent, ParentID: b.ParentID,
		CreatedAt: b.CreatedAt, LastUsedAt: b.LastUsedAt, Labels: b.Labels,
		Err: failure,
	}
}

func (s *live) current() Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshot()
}

// become changes the state and tells the sink. The caller holds mu.
func (s *live) become(state State, err error) {
	if s.state == state && errors.Is(err, s.err) {
		return
	}
	s.state, s.err = state, err
	s.m.follow.tell(s.snapshot())
}

// begin counts a request in, unless the session is over. The caller calls done
// at its end; ctx is over with the session as well.
func (s *live) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil, nil, s.gone()
	}
	s.busy.Add(1)
	s.saved.LastUsedAt = s.m.o.Now()
	ctx, release := backends.Within(ctx, s.life)
	return ctx, func() {
		release()
		s.busy.Done()
	}, nil
}

// gone is why nothing begins any more in a session that is over. The caller
// holds mu.
func (s *live) gone() error {
	if cause := context.Cause(s.life); cause != nil {
		return known(cause)
	}
	return errShutdown
}

// quietBudget bounds how long the end of a session waits for its requests in flight. What
// a far end runs was given up before, after 35 s; what is left hangs in this process, as
// in a file system whose server is gone.
const quietBudget = 40 * time.Second

// quiet waits until the requests in flight have ended.
func (s *live) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, quietBudget)
	defer cancel()
	if backends.Await(ctx, &s.busy) != nil {
		return ended(ctx, "requests of the session %q are still running", s.id).
			WithHint("See what they wait for, such as a file system that does not answer, then close or delete the session again; session/delete with force goes on without them. The session is given up meanwhile, and what they still write in it may come when it is open again, or is another service's.")
	}
	return nil
}

// finish lets nothing begin any more, and ends what has begun.
func (s *live) finish(ctx context.Context, cause error) error {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.end(cause)
	return s.settled(ctx)
}

// settled waits until nothing is being opened. The session is over, so that
// nothing follows.
func (s *live) settled(ctx context.Context) error {
	for _, p := range s.places() {
		s.mu.Lock()
		o := p.opening
		s.mu.Unlock()
		if o == nil {
			continue
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			return ended(ctx, "an environment of the session %q is still being opened", s.id)
		}
	}
	return nil
}

// detach is the session's part of a shutdown of the service, which has ended
// all openings already. Detaching ends the calls; the environment lives on.
func (s *live) detach(ctx context.Context) error {
	// Whoever opens, closes or deletes it comes to an end first, and may leave
	// nothing to detach.
	release, err := s.m.await(ctx, s.id)
	if err != nil {
		return err
	}
	defer release()
	if s.m.find(s.id) != s {
		return nil
	}
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	err = errors.Join(s.settled(ctx), s.detachAll(ctx))
	s.end(errShutdown)
	err = errors.Join(err, s.quiet(ctx))
	s.stopPumps(ctx)
	return errors.Join(err, s.leave())
}

// detachAll lets go of every environment that is open.
func (s *live) detachAll(ctx context.Context) error {
	places := s.places()
	errs := make([]error, len(places))
	var detaching sync.WaitGroup
	for i, p := range places {
		if env := p.current(); env != nil {
			detaching.Go(func() { errs[i] = env.Detach(ctx) })
		}
	}
	detaching.Wait()
	return errors.Join(errs...)
}

// stopPumps ends the pumps of environments that were detached.
func (s *live) stopPumps(ctx context.Context) {
	for _, p := range s.places() {
		p.stopPump(ctx)
	}
}

// leave saves what changed and gives the session up. One that has failed is
// known as failed to whoever looks at it later.
func (s *live) leave() error {
	err := s.keepUsed(true)
	err = errors.Join(err, s.write(func() error {
		s.mu.Lock()
		saved := s.record()
		saved.Failure = nil
		if s.state == StateFailed {
			saved.Failure = kept(s.err)
		}
		s.mu.Unlock()
		s.left = true
		return s.m.store.Save(saved)
	}))
	s.m.remove(s)
	return errors.Join(err, s.lock.Release())
}
