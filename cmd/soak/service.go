//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// Bounds of a service's life.
const (
	startLimit = 30 * time.Second
	// exitLimit is how long a service may take to end after its client went: 2 s
	// to notice, 7 s to shut down, and a busy machine.
	exitLimit = 20 * time.Second
)

// service is one running service with its client.
type service struct {
	*client.Client
	slot   int
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	editor *exec.Cmd // whom the client says to be
	ended  chan struct{}
	// doomed is set before anything is done that ends the service.
	doomed atomic.Bool

	mu            sync.Mutex
	calls         map[string]*callEvents
	subscriptions map[string]*subscription
	wrong         error // the first thing that an event showed to be wrong
}

// callEvents counts what was told of one call.
type callEvents struct {
	started, over int
	end           chan struct{} // closed at its end
}

// subscription checks a process's output as it is pushed.
type subscription struct {
	process *process
	next    int64
	open    bool
}

// start starts a service in a slot and initializes it.
func (w *world) start(ctx context.Context, slot int) (*service, error) {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	s := &service{
		slot: slot, ended: make(chan struct{}),
		calls: map[string]*callEvents{}, subscriptions: map[string]*subscription{},
	}
	s.editor = exec.Command("sleep", w.mark()) //nolint:noctx // it is killed by name
	if err := s.editor.Start(); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(w.dir, "services.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	s.cmd = exec.Command(w.caisson, "serve", "--log-level", "debug") //nolint:noctx // its end is part of the plan
	s.cmd.Env, s.cmd.Dir, s.cmd.Stderr = w.environment(), w.dir, log
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.Client = client.New(s.out, s.in, client.Options{
		ExecutionStarted:   func(p protocol.ExecutionParams) { s.told(p, true) },
		ExecutionCompleted: func(p protocol.ExecutionParams) { s.told(p, false) },
		ExecutionFailed:    func(p protocol.ExecutionParams) { s.told(p, false) },
		ProcessOutput:      s.printed,
	})
	go func() {
		defer close(s.ended)
		<-s.Done()
		_ = s.cmd.Wait() // how it ends is part of the plan
		_ = s.editor.Process.Kill()
		_ = s.editor.Wait()
	}()
	_, err = s.Initialize(ctx, protocol.InitializeParams{
		ProcessID:    &s.editor.Process.Pid,
		Capabilities: protocol.ClientCapabilities{ExecutionEvents: true, ProcessOutput: true},
	})
	if err != nil {
		_ = s.cmd.Process.Kill()
		return nil, fmt.Errorf("initialize: %w", err)
	}
	w.journal.note(fmt.Sprintf("service %d", slot), "is process %d", s.cmd.Process.Pid)
	w.put(s)
	return s, nil
}

// told takes note of an event of a call.
func (s *service) told(p protocol.ExecutionParams, started bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.calls[p.CallID]
	switch {
	case e == nil:
		return // of a call that nobody watches
	case started:
		e.started++
	default:
		e.over++
		if e.over == 1 {
			close(e.end)
		}
	}
	if e.started != 1 || e.over > 1 {
		s.fault(fmt.Errorf("call %s: %d started and %d terminal events", p.CallID, e.started, e.over))
	}
}

// fault keeps the first thing that is wrong. The lock is held.
func (s *service) fault(err error) {
	if s.wrong == nil {
		s.wrong = err
	}
}

// watch begins to count the events of a call.
func (s *service) watch(id string) *callEvents {
	e := &callEvents{end: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[id] = e
	return e
}

// forget ends watch. An answered call had one event of each kind.
func (s *service) forget(id string, answered bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.calls[id]
	delete(s.calls, id)
	if answered && (e.started != 1 || e.over != 1) {
		return fmt.Errorf("call %s was answered after %d started and %d terminal events", id, e.started, e.over)
	}
	return s.wrong
}

// follow expects a process's output from its first byte on, unless it does already.
func (s *service) follow(p *process) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sub := s.subscriptions[p.id]; sub != nil && sub.open {
		return false
	}
	s.subscriptions[p.id] = &subscription{process: p, open: true}
	return true
}

// printed checks a piece of output that was pushed.
func (s *service) printed(o protocol.ProcessOutputParams) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.subscriptions[o.ProcessID]
	if sub == nil || !sub.open {
		s.fault(fmt.Errorf("output of process %s, which nobody is subscribed to", o.ProcessID))
		return
	}
	var err error
	switch {
	case o.Error != nil:
		sub.open = false
		return
	case o.Offset != sub.next:
		err = fmt.Errorf("pushed output goes on at %d after %d", o.Offset, sub.next)
	case o.Gap:
		if o.NextOffset <= o.Offset {
			err = fmt.Errorf("a gap from %d to %d", o.Offset, o.NextOffset)
		}
		sub.next = o.NextOffset
	default:
		err = within(sub.process.output, o.Offset, string(o.Data), false)
		sub.next += int64(len(o.Data))
	}
	if o.EOF {
		sub.open = false
	}
	if err != nil {
		s.fault(fmt.Errorf("process %s: %w", o.ProcessID, err))
	}
}

// gone reports whether its end was begun, by us.
func (s *service) gone() bool { return s.doomed.Load() }

// end ends the service in some way and waits for it.
func (s *service) end(ctx context.Context, how func() error) error {
	s.doomed.Store(true)
	err := how()
	limit := time.NewTimer(exitLimit)
	defer limit.Stop()
	select {
	case <-s.ended:
		// Its writing half is ours to close.
		return errors.Join(err, ignoreClosed(s.in.Close()))
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-limit.C:
		return errors.Join(err, fmt.Errorf("the service, process %d, does not end within %v", s.cmd.Process.Pid, exitLimit))
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// hangUp is what a client's death does: both pipes are closed at once.
func (s *service) hangUp() error {
	return errors.Join(ignoreClosed(s.in.Close()), ignoreClosed(s.out.Close()))
}
