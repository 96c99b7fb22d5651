package connection

import (
	"context"
	"errors"
	"log/slog"

	"github.com/pkg/sftp"
)

// Destination is what a profile says about where to go. Everything but Host may
// be empty, which leaves it to the ssh configuration.
type Destination struct {
	// Host is a host name, an address, or an alias of the ssh configuration.
	Host string
	User string
	Port int
	// IdentityFile is tried before the configuration's identities.
	IdentityFile string
	// KnownHostsFile takes the place of all files of known hosts, for Host but
	// not for the hosts that are jumped over.
	KnownHostsFile string
	// ConfigFile is read in place of the user's and the system's configuration.
	ConfigFile string
}

// Options are choices of whoever connects.
type Options struct {
	// Program is OpenSSH's client; empty means the ssh in PATH, where there is
	// one.
	Program string
	// Log gets what is worth knowing when something fails; nil discards it.
	Log *slog.Logger
}

// ErrNoSFTP is in the chain of the error for a machine without an SFTP
// subsystem.
var ErrNoSFTP = errors.New("the machine has no sftp subsystem")

// ErrSessionsExhausted is in the chain of the error for a machine that lets no
// further session run beside those that are open, even on a connection of their
// own.
var ErrSessionsExhausted = errors.New("the machine allows no more sessions")

// Exit is how a remote command ended.
type Exit struct {
	// Code is the exit status; 128 plus the signal's number where there was one
	// that has a number.
	Code int
	// Signal is the name without SIG of the signal that ended the command.
	Signal string
}

// Result is a remote command that has run.
type Result struct {
	Exit
	Stdout []byte
	// Stderr is the tail, at most [MaxStderr] bytes.
	Stderr string
}

// Commands is what can be done on a machine that was reached: *Conn, or a
// double.
type Commands interface {
	Exec(ctx context.Context, command string) (*Stream, error)
	SFTP(ctx context.Context) (*sftp.Client, error)
}

var _ Commands = (*Conn)(nil)
