package local

import (
	"context"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// maxQueued is how many events wait for one subscriber before it has fallen
// behind.
const maxQueued = 1024

// hub passes events on to subscribers, who may be there before the far half is.
type hub struct {
	mu          sync.Mutex
	subscribers map[*subscription]bool
	err         error // set once it is closed
}

var _ backends.Events = (*hub)(nil)

func newHub() *hub { return &hub{subscribers: map[*subscription]bool{}} }

// Subscribe returns a queue of the events from now on.
func (h *hub) Subscribe() backends.Subscription {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &subscription{hub: h, events: make(chan backends.Event, maxQueued), over: make(chan struct{})}
	if h.err != nil {
		s.finish(h.err)
		return s
	}
	h.subscribers[s] = true
	return s
}

// follow passes on the process events of another source until it ends or ctx
// does.
func (h *hub) follow(ctx context.Context, from backends.Subscription) {
	defer from.Close()
	for {
		event, err := from.Next(ctx)
		if err != nil {
			return // the far half was let go of; here nobody falls behind
		}
		if event.Process != nil {
			h.publish(event)
		}
	}
}

func (h *hub) publish(e backends.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subscribers {
		select {
		case s.events <- e:
		default:
			delete(h.subscribers, s)
			s.finish(tool.Errorf(tool.Overloaded, "the subscriber fell behind by more than %d events", maxQueued))
		}
	}
}

// close ends every subscription after the events that it still holds.
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
	over   chan struct{} // closed when no more events come, because of err
	once   sync.Once
	err    error
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
		// What was queued before the end comes first.
		select {
		case e := <-s.events:
			return e, nil
		default:
			return backends.Event{}, s.err
		}
	}
}

// Close gives the queue up; Next fails afterwards.
func (s *subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscribers, s)
	s.finish(tool.Errorf(tool.Cancelled, "the subscription was closed"))
}
