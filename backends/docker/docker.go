// Package docker is the backend of environments that are containers of a Docker
// daemon, near or far: any Linux image, with or without a shell.
//
// The engine is spoken to through its API, and one file, engine.go, knows the
// library for that. The worker is put in by a read-only volume, filled once for
// each build of it and checked by its hash. The container's first process is
// "caisson init"; a session reaches its worker by an exec of "caisson attach"
// whose stream lasts as long as the session. What a container holds lies in
// anonymous volumes, so that it goes with the container, whoever removes it.
//
// What travels over the stream is not known here; see package remote.
package docker

import (
	"context"
	"errors"
	"log/slog"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
)

// Options say where the backend finds what it needs on this side.
type Options struct {
	// Executable is this program; empty means [os.Executable]. It is the worker
	// where the image is made for this machine; for another CPU
	// "caisson-linux-<arch>" is taken from the same directory.
	Executable string
	// Version is the program's version, for labels.
	Version string
	// Getenv reads the variables that choose a daemon (DOCKER_HOST and its
	// like); nil means [os.Getenv].
	Getenv func(string) string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend makes environments in containers. It keeps connections to the daemons
// that it has spoken to; Close ends them.
type Backend struct{}

// New makes the backend. It connects to nothing.
func New(o Options) *Backend { return &Backend{} }

// Kind is "docker".
func (*Backend) Kind() string { return profile.Docker }

// Check asks the daemon for its version, looks for the image and the worker,
// and tries in a container of the image's own that what must fail fails.
func (*Backend) Check(ctx context.Context, p profile.Profile) backends.Health {
	return backends.Health{}
}

// Open makes the container, or finds it when b is provisioned, and connects to
// the session's worker in it.
func (*Backend) Open(ctx context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	return nil, errors.ErrUnsupported
}

// Remove removes the environment's container and its anonymous volumes. A
// container of that name that is not ours is refused.
func (*Backend) Remove(ctx context.Context, b backends.Binding) error { return errors.ErrUnsupported }

// Prune removes, on the daemon that the environment chooses, containers and
// volumes of the store whose environment it no longer knows and whose owner,
// a process of this machine, is dead; and workers that nobody uses.
func (*Backend) Prune(ctx context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	return nil, errors.ErrUnsupported
}

// Close ends the connections to daemons. Environments live on.
func (*Backend) Close() error { return nil }

var _ backends.Backend = (*Backend)(nil)
