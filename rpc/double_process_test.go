package rpc

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// doubleProcess is a process of a double: its output and its end are what the
// test says.
type doubleProcess struct {
	env     *doubleEnv
	record  tool.Process
	output  []byte
	kept    int64 // the oldest offset still kept
	changed chan struct{}
}

func (e *doubleEnv) Processes() backends.Processes { return e }

func (e *doubleEnv) Start(_ context.Context, r tool.StartRequest) (tool.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := &doubleProcess{env: e, changed: make(chan struct{})}
	p.record = tool.Process{
		ID:          fmt.Sprintf("p-%020d", len(e.order)),
		OperationID: r.OperationID, OwnerKind: tool.OwnerMainAgent, OwnerID: r.Actor,
		RootThreadID: e.binding.Session, Lifecycle: tool.LifecycleSession,
		Status: tool.ProcessRunning, PID: 4242, PGID: 4242, TTY: r.TTY,
		Command: r.Command, Argv: r.Argv, CWD: "/w", Label: r.Label, ExitCode: -1,
		StartedAt: time.Unix(1, 0), UpdatedAt: time.Unix(1, 0),
	}
	e.processes[p.record.ID] = p
	e.order = append(e.order, p.record.ID)
	e.emit(tool.ProcessEvent{Type: tool.EventStarted, Process: p.record})
	return p.record, nil
}

// change changes a process under the lock, wakes its readers and tells of it.
func (e *doubleEnv) change(id string, kind tool.ProcessEventType, f func(*doubleProcess)) (tool.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.processes[id]
	if p == nil {
		return tool.Process{}, tool.Errorf(tool.ProcessNotFound, "there is no process %s", id)
	}
	f(p)
	p.record.TotalBytes = int64(len(p.output))
	close(p.changed)
	p.changed = make(chan struct{})
	if kind != "" {
		e.emit(tool.ProcessEvent{Type: kind, Process: p.record})
	}
	return p.record, nil
}

// write makes the process write, exit ends it.
func (e *doubleEnv) write(id, text string) {
	if _, err := e.change(id, "", func(p *doubleProcess) { p.output = append(p.output, text...) }); err != nil {
		panic(err)
	}
}

func (e *doubleEnv) exit(id string, code int) {
	_, err := e.change(id, tool.EventStopped, func(p *doubleProcess) {
		p.record.Status, p.record.ExitCode, p.record.OutputClosed = tool.ProcessStopped, code, true
		p.record.StoppedAt, p.record.TerminalCause = time.Unix(2, 0), string(tool.CauseNaturalExit)
	})
	if err != nil {
		panic(err)
	}
}

func (e *doubleEnv) List(context.Context) ([]tool.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]tool.Process, 0, len(e.order))
	for _, id := range e.order {
		list = append(list, e.processes[id].record)
	}
	return list, nil
}

func (e *doubleEnv) Get(_ context.Context, id string) (tool.Process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p := e.processes[id]; p != nil {
		return p.record, nil
	}
	return tool.Process{}, tool.Errorf(tool.ProcessNotFound, "there is no process %s", id)
}

func (e *doubleEnv) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	timeout := time.NewTimer(o.Wait)
	defer timeout.Stop()
	for {
		e.mu.Lock()
		p := e.processes[id]
		if p == nil {
			e.mu.Unlock()
			return tool.ReadResult{}, tool.Errorf(tool.ProcessNotFound, "there is no process %s", id)
		}
		out, changed := p.read(o), p.changed
		e.mu.Unlock()
		if len(out.Output) > 0 || out.Process.Status.Terminal() || o.Wait == 0 {
			return out, nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			out.TimedOut = true
			return out, nil
		case <-ctx.Done():
			return tool.ReadResult{}, ctx.Err()
		}
	}
}

func (p *doubleProcess) read(o tool.ReadOptions) tool.ReadResult {
	limit := int64(o.MaxBytes)
	if limit == 0 {
		limit = 32768
	}
	total := int64(len(p.output))
	start := max(0, total-limit)
	if o.OffsetBytes != nil {
		start = min(*o.OffsetBytes, total)
	}
	truncated := start < p.kept
	start = max(start, p.kept)
	end := min(start+limit, total)
	return tool.ReadResult{
		Process: p.record, Output: append([]byte(nil), p.output[start:end]...),
		StartOffset: start, EndOffset: end, TotalBytes: total, Truncated: truncated,
	}
}

func (e *doubleEnv) Write(_ context.Context, id string, data []byte) (tool.Process, error) {
	return e.change(id, "", func(p *doubleProcess) { p.output = append(p.output, data...) })
}

func (e *doubleEnv) CloseStdin(ctx context.Context, id string) (tool.Process, error) {
	return e.Get(ctx, id)
}

func (e *doubleEnv) Resize(_ context.Context, id string, size tool.TTY) (tool.Process, error) {
	return e.change(id, tool.EventUpdated, func(p *doubleProcess) { p.record.TTY = &size })
}

func (e *doubleEnv) Signal(_ context.Context, id, signal string) (tool.Process, error) {
	return e.change(id, "", func(p *doubleProcess) { p.record.Signal = signal })
}

func (e *doubleEnv) Stop(_ context.Context, id string) (tool.Process, error) {
	return e.change(id, tool.EventStopped, func(p *doubleProcess) {
		p.record.Status, p.record.Signal, p.record.OutputClosed = tool.ProcessStopped, "SIGTERM", true
		p.record.StoppedAt, p.record.TerminalCause = time.Unix(2, 0), string(tool.CauseRequestedStop)
	})
}

// emit tells the subscribers; the caller holds mu.
func (e *doubleEnv) emit(event tool.ProcessEvent) {
	for _, s := range e.subs {
		s.push(backends.Event{Process: &event})
	}
}

func (e *doubleEnv) Events() backends.Events { return e }

func (e *doubleEnv) Subscribe() backends.Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &doubleSub{ready: make(chan struct{}, 1)}
	e.subs = append(e.subs, s)
	return s
}

// doubleSub is a subscription with an endless queue, which a test can afford.
type doubleSub struct {
	mu     sync.Mutex
	events []backends.Event
	ready  chan struct{}
	ended  bool
}

func (s *doubleSub) push(e backends.Event) {
	s.mu.Lock()
	s.events = append(s.events, e)
	s.mu.Unlock()
	s.wake()
}

func (s *doubleSub) end() {
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.wake()
}

func (s *doubleSub) wake() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *doubleSub) Next(ctx context.Context) (backends.Event, error) {
	for {
		s.mu.Lock()
		if len(s.events) > 0 {
			e := s.events[0]
			s.events = s.events[1:]
			s.mu.Unlock()
			return e, nil
		}
		ended := s.ended
		s.mu.Unlock()
		if ended {
			return backends.Event{}, errors.New("the environment was detached")
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return backends.Event{}, errors.New("the subscription ended")
		}
	}
}

func (s *doubleSub) Close() {}
