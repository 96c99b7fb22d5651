// Package wasm is the backend of environments that run WebAssembly modules: WASI
// preview 1 commands, each run in a fresh instance with limited memory, fuel and
// time, no network, and no files but the preopened directories.
//
// Guests run in a process of the environment's own (folder engine), never in the
// service. File and search tools work on the same directories in the service's
// process, through the same code as everywhere. There are no commands.
package wasm

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/self"
)

// Options say how the backend runs its engines.
type Options struct {
	// Executable is the program that is started as "caisson wasm-engine"; empty
	// means the one that runs.
	Executable string
	// CacheDir keeps compiled modules from one service to the next, for all
	// environments of the user; it is made 0700. Empty: nothing is kept.
	CacheDir string
	// Environment are variables of the engine's process, as in [os.Environ]. Guests
	// do not see them. It gets no others of the service.
	Environment []string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend makes WebAssembly environments.
type Backend struct{ o Options }

var _ backends.Backend = (*Backend)(nil)

// New makes the backend. It starts nothing.
func New(o Options) *Backend {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{o: o}
}

// Kind is "wasm".
func (*Backend) Kind() string { return profile.WASM }

// executable is the program that is started as the engine.
func (b *Backend) executable() (string, error) {
	if b.o.Executable != "" {
		return b.o.Executable, nil
	}
	return self.Path()
}

// Open opens the preopened directories. The engine is started by the first module
// that is run.
func (b *Backend) Open(_ context.Context, at backends.Binding, _ backends.Progress) (backends.Environment, error) {
	if len(at.Profile.AllowedHosts) > 0 {
		return nil, tool.Errorf(tool.Unsupported, "allowed_hosts cannot be held by a wasm environment, whose guests have no network").
			WithHint("remove the member from the profile").WithPath("allowed_hosts")
	}
	if len(at.Packs) > 0 {
		return nil, tool.Errorf(tool.Unsupported, "the tool pack %s cannot run in a wasm environment, which runs WebAssembly modules only", at.Packs[0].Name).
			WithHint("leave the profile out of the pack's profiles, or register the tool as a module")
	}
	places, err := openPlaces(at)
	if err != nil {
		return nil, err
	}
	return newEnvironment(b, at, places), nil
}

// The parts of an environment's state directory. guestsDir is what guests may write;
// it lasts, and what is in it does not.
func guestsDir(at backends.Binding) string  { return filepath.Join(at.StateDir, "guests") }
func jobsDir(at backends.Binding) string    { return filepath.Join(guestsDir(at), "jobs") }
func exportsDir(at backends.Binding) string { return filepath.Join(at.StateDir, "exports") }

// emptyDir is what jobs find as the workspace of a profile without preopens.
func emptyDir(at backends.Binding) string { return filepath.Join(at.StateDir, "empty") }

// Remove deletes what the environment keeps in its state directory; preopened
// directories are never touched, and an engine ends with its service.
func (*Backend) Remove(_ context.Context, at backends.Binding) error {
	var all error
	for _, dir := range []string{guestsDir(at), exportsDir(at), emptyDir(at)} {
		if err := os.RemoveAll(dir); err != nil {
			all = errors.Join(all, tool.Errorf(tool.Internal, "remove the state of a wasm session: %w", err).WithPath(dir))
		}
	}
	return all
}
