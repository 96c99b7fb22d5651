// Package worker is the far end of an environment: the server of wire protocol
// 4 that gives one session its files, tools and processes. It glues the rooms
// below it together and decides who may connect, what a connection may ask for
// and when the worker ends; how a tool works or a process is started is theirs.
package worker

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// ErrIdle is what [Run] returns when nobody was connected for the lifetime: an
// orderly end that nobody asked for.
var ErrIdle = errors.New("no connection for the worker's lifetime")

// SessionDir is the directory of one session's records below a state directory.
func SessionDir(state, session string) string { return filepath.Join(state, "sessions", session) }

// JobsDir is where the session's jobs have their directories.
func JobsDir(state, session string) string { return filepath.Join(SessionDir(state, session), "jobs") }

// LockPath is the file that the worker of a session holds a lock on from before
// it listens until nothing of it is left.
func LockPath(state, session string) string {
	return filepath.Join(SessionDir(state, session), "worker.lock")
}

// Run serves one session until its end and returns when every process that it
// held is stopped and reaped. On stdio that is the end of input; on a socket a
// shutdown request, the lifetime ([ErrIdle]) or the end of ctx. Any other error
// says what could not be served or cleaned up, or that the shutdown timeout was
// not enough; then the workspace and the state directory are kept for
// inspection, and the caller must exit.
func Run(ctx context.Context, o Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	o = o.withDefaults()
	s := newServer(ctx, o)
	defer s.end(nil)
	if o.Listen == "" {
		return s.withinBudget(s.serveStdio)
	}
	return s.withinBudget(s.serveSocket)
}

// withinBudget runs f, which serves until the life ends and cleans up then, and
// gives up on it when that takes longer than the shutdown timeout: something
// that cannot be interrupted holds it, and only the end of the program helps.
func (s *server) withinBudget(f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-s.life.Done():
	}
	budget := time.NewTimer(s.o.ShutdownTimeout)
	defer budget.Stop()
	select {
	case err := <-done:
		return err
	case <-budget.C:
		return fmt.Errorf("the shutdown took longer than its %v", s.o.ShutdownTimeout)
	}
}

func (s *server) serveStdio() error {
	stream := &stdio{in: s.o.In, out: s.o.Out, ended: func() { s.end(nil) }}
	err := s.serve(stream, nil)
	s.end(nil)
	return errors.Join(err, s.cleanUp(s.bound().removeOnExit(), false))
}

func (s *server) serveSocket() (err error) {
	// The predecessor of this session may still be stopping its processes.
	waiting, cancel := context.WithTimeout(s.life, s.o.ShutdownTimeout+predecessorSlack)
	defer cancel()
	lock, err := endpoint.Acquire(waiting, LockPath(s.o.State, s.o.Session))
	if err != nil {
		return fmt.Errorf("the session's former worker has not ended: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()

	if s.peers, err = endpoint.NewPeers(endpoint.WorkerName); err != nil {
		return err
	}
	listener, err := endpoint.Listen(s.o.Listen)
	if err != nil {
		return err
	}
	s.listen(listener)
	if s.o.Ready != nil {
		if err := s.o.Ready(); err != nil {
			s.end(fmt.Errorf("say that the worker listens: %w", err))
		}
	}
	s.startIdling()
	s.stayReachable(listener)
	s.stopListening()
	s.connections.Wait()

	why := context.Cause(s.life)
	remove := s.bound().removeOnExit() || s.o.RemoveWhenIdle && s.o.Site == "" && errors.Is(why, ErrIdle)
	if err := s.cleanUp(remove, false); err != nil {
		return err
	}
	if errors.Is(why, context.Canceled) {
		return nil // told to end: by a request, or by a signal
	}
	return why
}
