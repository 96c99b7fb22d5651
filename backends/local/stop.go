package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// stopSlack is what a worker that was told to end gets beyond its own budget.
const stopSlack = 3 * time.Second

// stopWorker ends a binding's worker, and what a dead one left behind. When
// nothing of either is there any more it calls then, while no other can start.
func (b *Backend) stopWorker(ctx context.Context, at backends.Binding, then func() error) error {
	if errNoCommands() != nil || !everStarted(at) {
		return then()
	}
	if err := b.askToEnd(ctx, at); err != nil {
		return err
	}
	state := workerState(at)
	budget := at.Profile.ShutdownTimeout
	if budget <= 0 {
		budget = worker.DefaultShutdownTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, budget+stopSlack)
	defer cancel()
	path := worker.LockPath(state, at.Session)
	lock, err := endpoint.AcquireExisting(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil // another call has removed it all, and this is of the worker that came after
		}
		return then() // no worker got as far as that, or another call has removed it all
	}
	if err != nil {
		return tool.Errorf(tool.Internal, "the local worker does not end: %w", err).
			WithHint("try again, in some seconds if its socket in %s was removed, since it makes another one there; or end that process. Its state is kept in %s", filepath.Dir(workerOptions(at).Listen), state).WithDisk(state)
	}
	if err = process.End(ctx, state, at.Session); err != nil {
		err = fmt.Errorf("end what the local worker left behind: %w", err) // which keeps its kind and hint
	} else if err = os.Remove(workerOptions(at).Listen); errors.Is(err, fs.ErrNotExist) {
		err = nil // a worker that was killed leaves its socket, others do not
	}
	if err == nil {
		err = then()
	}
	return errors.Join(err, lock.Unlock())
}

// askToEnd has a worker that listens shut down. One that does not let us in,
// because its folder is gone or the session's token is, and one that is too old to
// be asked, get a signal: they end in the same order then, and only what went
// wrong is told their log alone.
func (b *Backend) askToEnd(ctx context.Context, at backends.Binding) error {
	path := workerOptions(at).Listen
	alive, err := supervise.Listening(ctx, path)
	if err != nil {
		return tool.Errorf(tool.Internal, "look for the local worker: %w", err)
	}
	if !alive {
		return nil
	}
	at.Packs = nil // which are not asked once more for that
	far, err := b.openFar(ctx, at, workspaceDir(at))
	if err == nil {
		asked := far.EndsOnRequest()
		if err := far.Shutdown(ctx); err != nil || asked {
			return err
		}
		err = errors.New("it does not announce that it can be asked")
	}
	b.o.Log.Info("a local worker gets a signal instead of a request to end", "session", at.Session, "reason", err)
	pid, err := endpoint.ServerPID(ctx, path)
	if err != nil {
		return tool.Errorf(tool.Internal, "find the local worker's process: %w", err)
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil && !errors.Is(err, os.ErrProcessDone) {
		return tool.Errorf(tool.Internal, "end the local worker, process %d: %w", pid, err)
	}
	return nil
}

// workspaceDir is the path of a binding's workspace as its worker knows it.
func workspaceDir(at backends.Binding) string {
	dir := at.WorkspaceFolder
	if dir == "" {
		dir = ownWorkspace(at)
	}
	if resolved, err := filepath.EvalSymlinks(dir); err == nil {
		return resolved
	}
	return dir
}
