// Package ssh is the backend of environments on other machines that are reached
// by ssh: each is a directory of its own on a machine that others use too.
//
// How a machine is reached is known by package connection. Here is what is done
// there: the worker's program is put in place over the connection and checked by
// its hash; that program makes, finds and removes the environment's directory
// (the far end's subcommand "site"), so that nothing depends on the account's
// shell; and a session reaches its worker by one channel that runs "caisson
// attach" and lasts as long as the session.
//
// What travels over that channel is not known here; see package remote.
package ssh

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
)

// Options say where the backend finds what it needs on this side.
type Options struct {
	// Executable is this program; empty means the running one. It is the worker
	// where the machine is of this one's kind; for another "caisson-<os>-<arch>" is
	// taken from the same directory.
	Executable string
	// Version is the program's version, for the name of the worker's directory.
	Version string
	// Program is OpenSSH's client; empty means the ssh in PATH, where there is
	// one.
	Program string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend makes environments on machines behind ssh. It shares connections
// between environments; Close ends them.
type Backend struct {
	executable string
	version    string
	log        *slog.Logger
	pool       *connection.Pool
	programs   remote.Programs
	owner      remote.Owner

	mu sync.Mutex
	// placed are the workers that this process knows to be in place.
	placed map[string]placement
	// placing holds a slot for each machine, so that one call at a time puts a
	// worker there.
	placing map[string]chan struct{}
}

// New makes the backend. It connects to nothing.
func New(o Options) *Backend {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{
		executable: o.Executable,
		version:    o.Version,
		log:        o.Log,
		pool:       connection.NewPool(connection.Options{Program: o.Program, Log: o.Log}),
		owner:      remote.Self(),
		placed:     map[string]placement{},
		placing:    map[string]chan struct{}{},
	}
}

// Kind is "ssh".
func (*Backend) Kind() string { return profile.SSH }

// Open makes the environment's directory, or finds it when b is provisioned, and
// connects to the session's worker in it.
func (b *Backend) Open(ctx context.Context, binding backends.Binding, progress backends.Progress) (backends.Environment, error) {
	p, err := binding.Profile.InFolder(binding.WorkspaceFolder)
	if err != nil {
		return nil, backends.NothingMade(err)
	}
	binding.Profile = p
	return remote.Open(ctx, &host{backend: b}, binding, progress, remote.Options{
		Backend:                  b.Kind(),
		Root:                     remote.SiteWorkspace(binding),
		RequireExistingWorkspace: true, // the site made it
		Log:                      b.log,
	})
}

// sourceCopy is the workspace_source of an environment that gets the opened
// folder.
const sourceCopy = "copy"

// Remove ends the environment's workers and removes its directory. A directory
// of that name that is not ours is refused.
func (b *Backend) Remove(ctx context.Context, binding backends.Binding) error {
	return (&host{backend: b}).Remove(ctx, binding)
}

// Close ends the connections. Environments live on, but those that were opened
// through this value cannot reconnect.
func (b *Backend) Close() error { return b.pool.Close() }

// destination is where a profile says to go.
func destination(p profile.Profile) connection.Destination {
	return connection.Destination{
		Host: p.Host, User: p.User, Port: p.Port,
		IdentityFile: p.IdentityFile, KnownHostsFile: p.KnownHostsFile, ConfigFile: p.SSHConfig,
	}
}

// random is 128 bits that nobody guesses, in hex.
func random() string {
	var raw [16]byte
	rand.Read(raw[:]) // never fails
	return hex.EncodeToString(raw[:])
}

var _ backends.Backend = (*Backend)(nil)
