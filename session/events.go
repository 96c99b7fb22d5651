package session

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// pump carries an environment's events to the session until it is stopped or
// the environment ends them.
type pump struct {
	stop context.CancelFunc
	done chan struct{}
}

// startPump begins with the next event. The caller holds mu.
func (s *live) startPump(env backends.Environment) {
	ctx, stop := context.WithCancel(context.Background())
	p := &pump{stop: stop, done: make(chan struct{})}
	s.pump = p
	events := env.Events()
	sub := events.Subscribe()
	go func() {
		defer close(p.done)
		for s.drain(ctx, env, sub) {
			// We fell behind. What was missed shows in the list.
			sub = events.Subscribe()
			s.resync(ctx, env)
		}
	}()
}

// stopPump ends the pump of an environment that was detached: what was sent
// before is still handled, unless ctx ends first.
func (s *live) stopPump(ctx context.Context) {
	s.mu.Lock()
	p := s.pump
	s.pump = nil
	s.mu.Unlock()
	if p == nil {
		return
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	}
	p.stop()
	<-p.done
}

// drain handles events until the subscription ends, and reports whether that
// was because we fell behind.
func (s *live) drain(ctx context.Context, env backends.Environment, sub backends.Subscription) bool {
	defer sub.Close()
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return ctx.Err() == nil && tool.KindOf(err) == tool.Overloaded
		}
		if e.Process != nil {
			s.processEvent(*e.Process)
		}
		if e.State != nil {
			s.stateEvent(env, *e.State)
		}
	}
}

// stateEvent follows the state of the environment that the session has.
func (s *live) stateEvent(env backends.Environment, c backends.StateChange) {
	s.mu.Lock()
	if s.env == env && !s.over {
		switch c.State {
		case backends.StateConnecting:
			s.become(StateConnecting, nil)
		case backends.StateReady:
			s.tools = nil // the far end may be another one now
			s.become(StateReady, nil)
		case backends.StateDisconnected:
			s.become(StateDisconnected, c.Err)
		case backends.StateFailed:
			s.become(StateFailed, c.Err)
		}
	}
	s.mu.Unlock()
	if c.State != backends.StateConnecting {
		// Whoever waits for a process asks again, which reconnects or fails.
		s.processes.wakeAll()
	}
}

// resync handles the processes as they stand as if each had just changed.
func (s *live) resync(ctx context.Context, env backends.Environment) {
	list, err := env.Processes().List(ctx)
	if err != nil {
		s.m.log.Warn("events were missed, and the processes cannot be listed", "session", s.id, "error", err)
		s.processes.wakeAll()
		return
	}
	for _, p := range list {
		s.processEvent(tool.ProcessEvent{Type: eventFor(p), Process: p})
	}
}

// eventFor is the event that brings a process to where it is.
func eventFor(p tool.Process) tool.ProcessEventType {
	switch p.Status {
	case tool.ProcessFailed:
		return tool.EventFailed
	case tool.ProcessStopped:
		return tool.EventStopped
	default:
		return tool.EventUpdated
	}
}
