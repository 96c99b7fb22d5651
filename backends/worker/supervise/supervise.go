// Package supervise keeps workers alive where nobody else does: [Init] is the
// first process of a container, [Attach] the small command that joins the
// standard streams of an exec to a worker, and starts that worker when none
// listens. Neither looks into the bytes that pass.
package supervise

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/backends/worker"
)

// InitOptions say how long the environment lives and where its supervisor is
// asked for workers.
type InitOptions struct {
	// Control is the path of the control socket.
	Control string
	// State is the directory of the process records of all sessions.
	State string
	// Persistent environments outlive their workers. Others end when nobody
	// had a worker for Lifetime.
	Persistent bool
	// Lifetime is the idle limit; 0 means [worker.DefaultLifetime].
	Lifetime time.Duration
	// ShutdownTimeout bounds how long workers may take to end; 0 means
	// [worker.DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Executable is this program; empty means [os.Executable].
	Executable string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Register defines the flags --control, --state, --persistent, --lifetime and
// --shutdown-timeout-ms on fs.
func (o *InitOptions) Register(fs *flag.FlagSet) {}

// Args are the flags that give these options.
func (o InitOptions) Args() []string { return nil }

// Init runs as PID 1, or as a subreaper, until the idle limit is over (nil) or
// ctx ends; either way every worker has ended when it returns, or was killed
// after the shutdown timeout.
func Init(ctx context.Context, o InitOptions) error { return errors.ErrUnsupported }

// AttachOptions say which worker to reach and how to start it.
type AttachOptions struct {
	// Worker are the options of the worker that is started when none listens.
	// Listen, State and Session are needed.
	Worker worker.Options
	// Mark is printed first, as a line of its own, so that the host knows where
	// the worker's bytes begin. Empty prints nothing.
	Mark string
	// Control is the control socket of the environment's [Init]; empty, or
	// nobody there, means that Attach starts the worker itself, detached.
	Control string
	// Executable is this program; empty means [os.Executable].
	Executable string
	// Stdin and Stdout are joined to the worker.
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
}

// Register defines the worker's flags and --mark and --control on fs.
func (o *AttachOptions) Register(fs *flag.FlagSet) {}

// Args are the flags that give these options.
func (o AttachOptions) Args() []string { return nil }

// Attach joins the streams to the worker of a session and returns when either
// side has ended.
func Attach(ctx context.Context, o AttachOptions) error { return errors.ErrUnsupported }
