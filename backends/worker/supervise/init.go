package supervise

import (
	"flag"
	"log/slog"
	"strconv"
	"time"

	"github.com/caisson-dev/caisson/backends/worker"
)

// InitOptions say how long the environment lives and where its supervisor is
// asked for workers.
type InitOptions struct {
	// Control is the path of the control socket, in a directory of its user's
	// own.
	Control string
	// Persistent environments outlive their workers. Others end when nobody
	// had a worker for Lifetime, and not before somebody has had time to come.
	Persistent bool
	// Lifetime is the idle limit; 0 means [worker.DefaultLifetime].
	Lifetime time.Duration
	// ShutdownTimeout bounds how long workers may take to end; 0 means
	// [worker.DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// Executable is this program; empty means the one that runs.
	Executable string
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Register defines the flags --control, --persistent, --lifetime and
// --shutdown-timeout-ms on flags.
func (o *InitOptions) Register(flags *flag.FlagSet) {
	flags.StringVar(&o.Control, "control", o.Control, "take requests for workers on this `socket`")
	flags.BoolVar(&o.Persistent, "persistent", o.Persistent, "outlive the workers")
	flags.Func("lifetime", "`seconds` without a worker after which the environment ends; 0: 600",
		worker.DurationFlag(&o.Lifetime, time.Second))
	flags.Func("shutdown-timeout-ms", "`milliseconds` that workers get to end; 0: 7000",
		worker.DurationFlag(&o.ShutdownTimeout, time.Millisecond))
}

// Args are the flags that give these options.
func (o InitOptions) Args() []string {
	var args []string
	if o.Control != "" {
		args = append(args, "--control="+o.Control)
	}
	if o.Persistent {
		args = append(args, "--persistent")
	}
	if o.Lifetime > 0 {
		args = append(args, "--lifetime="+strconv.FormatInt(int64((o.Lifetime+time.Second-1)/time.Second), 10))
	}
	if o.ShutdownTimeout > 0 {
		args = append(args, "--shutdown-timeout-ms="+strconv.FormatInt(max(1, o.ShutdownTimeout.Milliseconds()), 10))
	}
	return args
}

func (o InitOptions) withDefaults() InitOptions {
	if o.Lifetime <= 0 {
		o.Lifetime = worker.DefaultLifetime
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = worker.DefaultShutdownTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}
