// Package local is the backend of sessions that work on this machine, in the
// folder that the editor has open. File and search tools run in the service's
// own process, through the same code as everywhere else. Commands run in a
// worker of their own, started at the first one and reached like every other
// worker, so that a local process too survives the service.
package local

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// Options say how the backend starts its workers.
type Options struct {
	// Executable is the program that is started as "caisson worker"; empty
	// means the one that runs.
	Executable string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend makes local environments.
type Backend struct {
	o Options
	// login is the user's login environment, taken once.
	login func() loginEnvironment
}

// New makes the backend. It starts nothing.
func New(o Options) *Backend {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{o: o, login: sync.OnceValue(func() loginEnvironment {
		login := readLogin(os.Environ())
		if login.problem != nil {
			o.Log.Warn("no login environment: commands get that of the service", "reason", login.problem)
		}
		return login
	})}
}

// Kind is "local".
func (*Backend) Kind() string { return profile.Local }

// Open opens the folder, or a directory of the state directory when there is
// none. A worker that still lives is reattached, so that its processes are
// heard of; none is started.
func (b *Backend) Open(ctx context.Context, at backends.Binding, p backends.Progress) (backends.Environment, error) {
	root, err := openRoot(at)
	if err != nil {
		return nil, err
	}
	e := newEnvironment(b, at, root)
	alive, err := e.reattach(ctx, p)
	if err == nil {
		err = e.addPacks(ctx, p)
	}
	switch {
	case err == nil:
		return e, nil
	case alive: // with the session's processes, which are not ours to end
		return nil, errors.Join(err, e.Detach(context.WithoutCancel(ctx)))
	}
	return nil, e.unmade(ctx, err)
}

// openRoot opens the binding's workspace. The opened folder is never made; the
// directory of a session without one is made the first time only, because an
// absent one is a loss later.
func openRoot(at backends.Binding) (*workspace.Root, error) {
	dir := at.WorkspaceFolder
	if dir == "" {
		dir = ownWorkspace(at)
		if !at.Provisioned {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, tool.Errorf(tool.Internal, "make the session's workspace: %w", err).WithPath(dir)
			}
		}
	}
	root, err := workspace.Open(dir)
	switch {
	case err == nil:
		return root, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, tool.Errorf(tool.BackendUnavailable, "open the folder %s: %w", dir, err).WithPath(dir)
	case at.Provisioned:
		return nil, tool.Errorf(tool.EnvironmentLost, "the session's folder %s is not there any more", dir).
			WithHint("bring it back, or open a new session").WithPath(dir)
	default:
		return nil, tool.Errorf(tool.BackendUnavailable, "there is no folder %s", dir).
			WithHint("open a folder that exists").WithPath(dir)
	}
}

// The parts of an environment's state directory.
func ownWorkspace(at backends.Binding) string { return filepath.Join(at.StateDir, "workspace") }
func workerState(at backends.Binding) string  { return filepath.Join(at.StateDir, "worker") }
func exportsDir(at backends.Binding) string   { return filepath.Join(at.StateDir, "exports") }

// Remove stops the session's worker and deletes what the environment keeps in
// its state directory; the opened folder is never touched. After a failure to
// stop everything is kept.
func (b *Backend) Remove(ctx context.Context, at backends.Binding) error {
	return b.stopWorker(ctx, at, func() error {
		var all error
		for _, dir := range []string{workerState(at), exportsDir(at), ownWorkspace(at)} {
			if err := workspace.Remove(dir); err != nil {
				all = errors.Join(all, tool.Errorf(tool.Internal, "remove the state of a local session: %w", err).WithPath(dir))
			}
		}
		return all
	})
}

var _ backends.Backend = (*Backend)(nil)
