// Package docker is the backend of environments that are containers of a Docker
// daemon, near or far: any Linux image, with or without a shell.
//
// The engine is spoken to through its API, and the files engine*.go alone know the
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
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Options say where the backend finds what it needs on this side.
type Options struct {
	// Executable is this program; empty means the running one. It is the worker
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
type Backend struct {
	version  string
	log      *slog.Logger
	chooser  chooser
	owner    owner
	caller   string // uid:gid
	binaries binaries
	workers  workers
	users    users

	mu      sync.Mutex
	closed  bool
	engines map[string]*engine
}

// New makes the backend. It connects to nothing.
func New(o Options) *Backend {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		home = "" // then there are no contexts of the docker CLI
	}
	b := &Backend{
		version:  o.Version,
		log:      o.Log,
		chooser:  chooser{getenv: o.Getenv, home: home},
		owner:    self(),
		caller:   callerIDs(),
		binaries: binaries{executable: o.Executable},
		engines:  map[string]*engine{},
	}
	b.workers = workers{backend: b, verified: map[string]volumeInfo{}, busy: map[string]chan struct{}{}}
	return b
}

// Kind is "docker".
func (*Backend) Kind() string { return profile.Docker }

// Open makes the container, or finds it when b is provisioned, and connects to
// the session's worker in it.
func (b *Backend) Open(ctx context.Context, binding backends.Binding, p backends.Progress) (backends.Environment, error) {
	h, binding, err := b.host(binding)
	if err != nil {
		return nil, backends.NothingMade(err)
	}
	perCall := binding.Profile.ContainerPolicy == profile.PolicyPerCall
	packs := binding.Packs
	if perCall {
		binding.Packs = nil // no command runs beside the files
	}
	env, err := remote.Open(ctx, h, binding, p, remote.Options{
		Backend:                  b.Kind(),
		Root:                     binding.Profile.Workspace,
		RequireExistingWorkspace: true, // it is a mount
		Log:                      b.log,
	})
	switch {
	case err != nil:
		return nil, err
	case !perCall:
		return env, nil
	}
	binding.Packs = packs
	return b.openPerCall(ctx, newPerCall(env, h, binding), p)
}

// host prepares what reaches a binding's container, with the opened folder
// filled into the profile.
func (b *Backend) host(binding backends.Binding) (*host, backends.Binding, error) {
	p, err := binding.Profile.InFolder(binding.WorkspaceFolder)
	if err != nil {
		return nil, binding, err
	}
	binding.Profile = p
	if err := refuse(p); err != nil {
		return nil, binding, err
	}
	e, err := b.engineFor(p)
	if err != nil {
		return nil, binding, err
	}
	return &host{backend: b, engine: e}, binding, nil
}

// engineFor returns the connection to the daemon that the profile chooses.
func (b *Backend) engineFor(p profile.Profile) (*engine, error) {
	chosen, err := b.chooser.choose(p)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, tool.Errorf(tool.BackendUnavailable, "the docker backend was closed: %w", net.ErrClosed)
	}
	if e := b.engines[chosen.key()]; e != nil {
		return e, nil
	}
	e, err := newEngine(chosen)
	if err != nil {
		return nil, err
	}
	b.engines[chosen.key()] = e
	return e, nil
}

// Remove removes the environment's container and its anonymous volumes. A
// container of that name that is not ours is refused.
func (b *Backend) Remove(ctx context.Context, binding backends.Binding) error {
	e, err := b.engineFor(binding.Profile)
	if err != nil {
		return err
	}
	return (&host{backend: b, engine: e}).Remove(ctx, binding)
}

// Prune removes, on the daemon that the environment chooses and on those that
// the profiles name, containers and volumes of the store whose environment it no
// longer knows and whose owner, a process of this machine, is dead; and workers
// that nobody uses.
func (b *Backend) Prune(ctx context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	var found []backends.Resource
	var failures []error
	seen := map[*engine]bool{}
	for _, p := range append([]profile.Profile{{}}, o.Profiles...) {
		if p.Backend != "" && p.Backend != profile.Docker {
			continue
		}
		e, err := b.engineFor(p)
		if err != nil {
			o.Skip(endpointOf(p), err)
			continue
		}
		if seen[e] {
			continue
		}
		seen[e] = true
		if _, err := e.hello(ctx); err != nil && ctx.Err() == nil {
			o.Skip(e.endpoint.Host, err)
			continue
		}
		some, err := b.prune(ctx, e, o, time.Now())
		found = append(found, some...)
		failures = append(failures, err)
	}
	return found, errors.Join(failures...)
}

// endpointOf names a profile's daemon where it cannot be found out.
func endpointOf(p profile.Profile) string {
	switch {
	case p.DockerHost != "":
		return p.DockerHost
	case p.DockerContext != "":
		return "the docker context " + p.DockerContext
	}
	return "the docker daemon"
}

// Close ends the connections to daemons, and no other is made through this value.
// Environments live on, but those that were opened through it cannot reconnect.
func (b *Backend) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []error
	for _, e := range b.engines {
		all = append(all, e.close())
	}
	clear(b.engines)
	b.closed = true
	return errors.Join(all...)
}

// random is 128 bits that nobody guesses, in hex.
func (b *Backend) random() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

var _ backends.Backend = (*Backend)(nil)
