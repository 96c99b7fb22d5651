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
func (p *place) startPump(env backends.Environment) {
	ctx, stop := context.WithCancel(context.Background())
	u := &pump{stop: stop, done: make(chan struct{})}
	p.pump = u
	events := env.Events()
	sub := events.Subscribe()
	go func() {
		defer close(u.done)
		for p.drain(ctx, env, sub) {
			// We fell behind. What was missed shows in the list.
			sub = events.Subscribe()
			p.resync(ctx, env)
		}
	}()
}

// stopPump ends the pump of an environment that was detached: what was sent
// before is still handled, unless ctx ends first.
func (p *place) stopPump(ctx context.Context) {
	p.s.mu.Lock()
	u := p.pump
	p.pump = nil
	p.s.mu.Unlock()
	if u == nil {
		return
	}
	select {
	case <-u.done:
	case <-ctx.Done():
	}
	u.stop()
	<-u.done
}

// drain handles events until the subscription ends, and reports whether that
// was because we fell behind.
func (p *place) drain(ctx context.Context, env backends.Environment, sub backends.Subscription) bool {
	defer sub.Close()
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return ctx.Err() == nil && tool.KindOf(err) == tool.Overloaded
		}
		if e.Process != nil {
			p.s.m.sink.Room(ctx)
			p.processEvent(*e.Process)
		}
		if e.State != nil {
			p.stateEvent(env, *e.State)
		}
	}
}

// stateEvent follows the state of the environment that the place has.
func (p *place) stateEvent(env backends.Environment, c backends.StateChange) {
	p.s.mu.Lock()
	if p.env == env && !p.s.over {
		switch c.State {
		case backends.StateConnecting:
			p.become(StateConnecting, nil)
		case backends.StateReady:
			p.tools = nil // the far end may have been replaced
			p.become(StateReady, nil)
		case backends.StateDisconnected:
			p.become(StateDisconnected, c.Err)
		case backends.StateFailed:
			p.become(StateFailed, c.Err)
		}
	}
	p.s.mu.Unlock()
	if c.State != backends.StateConnecting {
		// Whoever waits for a process asks again, which reconnects or fails.
		p.processes.wakeAll()
	}
}

// resync handles the processes as they stand as if each had just changed.
func (p *place) resync(ctx context.Context, env backends.Environment) {
	list, err := env.Processes().List(ctx)
	if err != nil {
		p.s.m.log.Warn("events were missed, and the processes cannot be listed", "session", p.s.id, "profile", p.profile().Name, "error", err)
		p.processes.wakeAll()
		return
	}
	for _, process := range list {
		p.s.m.sink.Room(ctx)
		p.processEvent(tool.ProcessEvent{Type: eventFor(process), Process: process})
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
