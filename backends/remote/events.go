package remote

import (
	"context"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// hub passes events on to subscribers. A slow one is ended rather than waited
// for.
type hub struct {
	mu          sync.Mutex
	subscribers map[*subscription]struct{}
	state       backends.State
	err         error // set once it is closed
}

var _ backends.Events = (*hub)(nil)

func newHub() *hub { return &hub{subscribers: make(map[*subscription]struct{})} }

// Subscribe returns a queue of the events from now on.
func (h *hub) Subscribe() backends.Subscription {
	s := &subscription{hub: h, events: make(chan backends.Event, maxQueued), over: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		s.finish(h.err)
		return s
	}
	h.subscribers[s] = struct{}{}
	return s
}

// publish never blocks.
func (h *hub) publish(e backends.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(e)
}

// change publishes a change of state, if it is one.
func (h *hub) change(state backends.State, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != state {
		h.state = state
		h.send(backends.Event{State: &backends.StateChange{State: state, Err: err}})
	}
}

// send is publish with h.mu held.
func (h *hub) send(e backends.Event) {
	for s := range h.subscribers {
		select {
		case s.events <- e:
		default:
			delete(h.subscribers, s)
			s.finish(tool.Errorf(tool.Overloaded, "a subscriber of events fell behind by more than %d", maxQueued).
				WithHint("subscribe again and list the processes"))
		}
	}
}

// close ends every subscription once what it still holds is taken.
func (h *hub) close(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		return
	}
	h.err = err
	for s := range h.subscribers {
		s.finish(err)
	}
	clear(h.subscribers)
}

// subscription is one subscriber's queue.
type subscription struct {
	hub    *hub
	events chan backends.Event
	over   chan struct{} // closed when no more events come
	once   sync.Once
	err    error // why; set before over is closed
}

func (s *subscription) finish(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.over)
	})
}

// Next waits for the next event.
func (s *subscription) Next(ctx context.Context) (backends.Event, error) {
	select {
	case e := <-s.events:
		return e, nil
	default:
	}
	select {
	case e := <-s.events:
		return e, nil
	case <-ctx.Done():
		return backends.Event{}, ctx.Err()
	case <-s.over:
	}
	select {
	case e := <-s.events: // it came just before the end
		return e, nil
	default:
		return backends.Event{}, s.err
	}
}

// Close ends the subscription.
func (s *subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscribers, s)
	s.finish(tool.Errorf(tool.Cancelled, "the subscription was closed"))
}
