package backends

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/caisson-dev/caisson/backends/tool"
)

// MaxQueuedEvents is how many events wait for one subscriber of a Hub before it
// has fallen behind.
const MaxQueuedEvents = 1024

// MaxQueuedBytes is how many bytes of text may wait in more than one of them: a far
// end may write 16 MiB about a process.
const MaxQueuedBytes = 64 << 20

// Hub is the [Events] of an environment: it passes events on to subscribers. One
// that falls behind by more than [MaxQueuedEvents] or [MaxQueuedBytes] is ended
// rather than waited for.
type Hub struct {
	mu          sync.Mutex
	subscribers map[*subscription]struct{}
	state       State
	err         error // set once it is closed
}

var _ Events = (*Hub)(nil)

// NewHub makes a hub without subscribers.
func NewHub() *Hub { return &Hub{subscribers: make(map[*subscription]struct{})} }

// Subscribe returns a queue of the events from now on.
func (h *Hub) Subscribe() Subscription {
	s := &subscription{hub: h, events: make(chan queued, MaxQueuedEvents), over: make(chan struct{})}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err != nil {
		s.finish(h.err)
		return s
	}
	h.subscribers[s] = struct{}{}
	return s
}

// Publish passes an event on. It never blocks.
func (h *Hub) Publish(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.send(e)
}

// Change publishes a change of state, if it is one.
func (h *Hub) Change(state State, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != state {
		h.state = state
		h.send(Event{State: &StateChange{State: state, Err: err}})
	}
}

// send is Publish with h.mu held.
func (h *Hub) send(e Event) {
	size := textOf(e)
	for s := range h.subscribers {
		if before := s.bytes.Add(size) - size; before == 0 || before+size <= MaxQueuedBytes {
			select {
			case s.events <- queued{e, size}:
				continue
			default:
			}
		}
		delete(h.subscribers, s)
		s.finish(tool.Errorf(tool.Overloaded, "a subscriber of events fell behind by more than %d, or %d MiB", MaxQueuedEvents, MaxQueuedBytes>>20).
			WithHint("subscribe again and list the processes"))
	}
}

// textOf is how many bytes of text an event holds that may be long.
func textOf(e Event) int64 {
	if e.Process == nil {
		return 0
	}
	r := &e.Process.Process
	size := len(r.Command) + len(r.CWD) + len(r.LastError) + len(r.Label)
	for _, a := range r.Argv {
		size += len(a)
	}
	return int64(size)
}

// Follow passes on the process events of another source until it ends or ctx
// does.
func (h *Hub) Follow(ctx context.Context, from Subscription) {
	defer from.Close()
	for {
		event, err := from.Next(ctx)
		if err != nil {
			return // the source was let go of; here nobody falls behind
		}
		if event.Process != nil {
			h.Publish(event)
		}
	}
}

// Close ends every subscription with err, once what it still holds is taken.
// Closing again does nothing.
func (h *Hub) Close(err error) {
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

// queued is an event that waits, with the size of its text.
type queued struct {
	event Event
	size  int64
}

// subscription is one subscriber's queue.
type subscription struct {
	hub    *Hub
	events chan queued
	bytes  atomic.Int64  // that are queued
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
func (s *subscription) Next(ctx context.Context) (Event, error) {
	select {
	case e := <-s.events:
		return s.taken(e), nil
	default:
	}
	select {
	case e := <-s.events:
		return s.taken(e), nil
	case <-ctx.Done():
		return Event{}, ctx.Err()
	case <-s.over:
	}
	select {
	case e := <-s.events: // it came just before the end
		return s.taken(e), nil
	default:
		return Event{}, s.err
	}
}

// taken notes that an event waits no more.
func (s *subscription) taken(q queued) Event {
	s.bytes.Add(-q.size)
	return q.event
}

// Close ends the subscription.
func (s *subscription) Close() {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	delete(s.hub.subscribers, s)
	s.finish(tool.Errorf(tool.Cancelled, "the subscription was closed"))
}
