package worker

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// Options say how a worker is reached and what its one session may do. The
// zero value is a worker on stdio with the defaults of the protocol.
type Options struct {
	// Listen is the path of the Unix socket to serve, at most
	// [endpoint.MaxSocketPath] bytes; its directory is made 0700 when missing. Empty means that In and
	// Out are the one connection.
	Listen string
	// State is the directory of the durable process records and of exports.
	// Empty means a temporary one that goes with the worker; a socket worker
	// must have one.
	State string
	// Session is the only session that may initialize. Empty lets the first
	// one choose; a socket worker must have one.
	Session string
	// Mode is what a call gets that asks for nothing; Ceiling is what none
	// exceeds, whatever a frame says. Both default to [tool.Standard].
	Mode, Ceiling tool.Mode
	// Writable are absolute paths that standard commands may write beside the
	// workspace.
	Writable []string
	// Lifetime is how long a socket worker lives without a connection; 0 means
	// [DefaultLifetime].
	Lifetime time.Duration
	// MaxOutputBytes bounds what one command returns; 0 means the tools' own.
	MaxOutputBytes int64
	// Shell runs command lines; empty means the best one that is there.
	Shell string
	// ShutdownTimeout is the budget from the end of input to the exit; 0 means
	// [DefaultShutdownTimeout].
	ShutdownTimeout time.Duration
	// RemoveWhenIdle removes the workspace when the lifetime ends the worker.
	RemoveWhenIdle bool
	// Site is the directory of the environment, with the workspace in it, on a
	// machine that is not the environment's alone. RemoveWhenIdle then means the
	// whole of it, once no other session's worker lives there, and is done by
	// whoever runs the worker, after its end.
	Site string
	// Shared says that other sessions work in the same environment, and keeps
	// confined commands from signalling theirs, where the kernel can see to that.
	Shared bool
	// Contained says that the environment has memory of its own, as a container has,
	// and has commands ended there before the worker when it is short. On a machine
	// that others use too they are chosen by their size, like everything else.
	Contained bool
	// Foreground says that the environment ends with the call: nothing runs in the
	// background, and a command that takes too long is killed.
	Foreground bool
	// ShareDir is a directory of the host's, in which it may listen for this worker.
	// Empty when there is none.
	ShareDir string

	// The members below are no flags.

	// In and Out are the connection of a worker without Listen.
	In  io.Reader
	Out io.Writer
	// Ready is called once a socket worker listens. Its error ends the worker.
	Ready func() error
	// AdoptOrphans makes the whole program the reaper of its descendants, so that
	// no command leaves anything behind. Then every child of the program must be
	// a command of the worker.
	AdoptOrphans bool
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Defaults and limits of a worker.
const (
	// DefaultLifetime is the idle limit of wire protocol 4.
	DefaultLifetime = 600 * time.Second
	// DefaultShutdownTimeout is the protocol's budget of a native worker.
	DefaultShutdownTimeout = 7 * time.Second
	// maxTimeoutMS is the protocol's limit of a timeout in milliseconds.
	maxTimeoutMS = 2147483647
)

// Register defines the flags of the options on fs, with o's present values as
// their defaults.
func (o *Options) Register(fs *flag.FlagSet) {
	fs.StringVar(&o.Listen, "listen", o.Listen, "serve the Unix `socket` instead of stdin and stdout")
	fs.StringVar(&o.State, "state", o.State, "keep process records and exports in `dir`")
	fs.StringVar(&o.Session, "session", o.Session, "serve only the session with this `id`")
	fs.Func("permission-mode", "`mode` of calls that ask for none: read_only, standard, unconfined", modeFlag(&o.Mode))
	fs.Func("max-permission-mode", "`mode` that no call exceeds", modeFlag(&o.Ceiling))
	fs.Func("writable-path", "absolute `path` that standard commands may write (repeatable)", func(s string) error {
		if !filepath.IsAbs(s) {
			return fmt.Errorf("%q is not an absolute path", s)
		}
		o.Writable = append(o.Writable, s)
		return nil
	})
	fs.Func("lifetime", "`seconds` without a connection after which a socket worker ends; 0: 600", DurationFlag(&o.Lifetime, time.Second))
	fs.Int64Var(&o.MaxOutputBytes, "max-output-bytes", o.MaxOutputBytes, "most `bytes` that one command returns")
	fs.StringVar(&o.Shell, "shell", o.Shell, "`path` of the shell for command lines")
	fs.Func("shutdown-timeout-ms", "`milliseconds` from the end of input to the exit; 0: 7000", DurationFlag(&o.ShutdownTimeout, time.Millisecond))
	fs.BoolVar(&o.RemoveWhenIdle, "remove-when-idle", o.RemoveWhenIdle, "remove the workspace when the lifetime ends the worker")
	fs.StringVar(&o.Site, "site", o.Site, "the environment lies in `dir`, on a machine that is not its own")
	fs.BoolVar(&o.Shared, "shared", o.Shared, "other sessions work in the same environment: commands cannot signal theirs")
	fs.BoolVar(&o.Contained, "contained", o.Contained, "the environment has memory of its own: commands are ended first when it is short")
	fs.BoolVar(&o.Foreground, "foreground", o.Foreground, "run nothing in the background: a command that takes too long is killed")
	fs.StringVar(&o.ShareDir, "share-dir", o.ShareDir, "connect to the host's sockets in `dir`, which it sees too")
}

func modeFlag(to *tool.Mode) func(string) error {
	return func(s string) error {
		if m := tool.Mode(s); m.Valid() {
			*to = m
			return nil
		}
		return fmt.Errorf("unknown mode %q: use read_only, standard or unconfined", s)
	}
}

// DurationFlag parses a whole number of units, at most 2147483647, into to.
func DurationFlag(to *time.Duration, unit time.Duration) func(string) error {
	return func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 || n > maxTimeoutMS {
			return fmt.Errorf("%q is not a number from 0 to %d", s, maxTimeoutMS)
		}
		*to = time.Duration(n) * unit
		return nil
	}
}

// Args are the flags that give these options, without the program's name or
// the subcommand. Nothing in them is secret.
func (o Options) Args() []string {
	var args []string
	str := func(name, value string) {
		if value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	str("listen", o.Listen)
	str("state", o.State)
	str("session", o.Session)
	str("permission-mode", string(o.Mode))
	str("max-permission-mode", string(o.Ceiling))
	for _, path := range o.Writable {
		str("writable-path", path)
	}
	if o.Lifetime > 0 {
		// Whole seconds, rounded up: a shorter limit must not become "default".
		str("lifetime", strconv.FormatInt(int64((o.Lifetime+time.Second-1)/time.Second), 10))
	}
	if o.MaxOutputBytes > 0 {
		str("max-output-bytes", strconv.FormatInt(o.MaxOutputBytes, 10))
	}
	str("shell", o.Shell)
	if o.ShutdownTimeout > 0 {
		str("shutdown-timeout-ms", strconv.FormatInt(max(1, o.ShutdownTimeout.Milliseconds()), 10))
	}
	if o.RemoveWhenIdle {
		args = append(args, "--remove-when-idle")
	}
	str("site", o.Site)
	if o.Shared {
		args = append(args, "--shared")
	}
	if o.Contained {
		args = append(args, "--contained")
	}
	if o.Foreground {
		args = append(args, "--foreground")
	}
	str("share-dir", o.ShareDir)
	return args
}

// Check says what is wrong with the options before anything is started.
func (o Options) Check() error {
	o = o.withDefaults()
	switch {
	case !o.Mode.Valid() || !o.Ceiling.Valid():
		return fmt.Errorf("unknown permission mode %q or %q", o.Mode, o.Ceiling)
	case !o.Mode.Within(o.Ceiling):
		return fmt.Errorf("the permission mode %s is above the ceiling %s", o.Mode, o.Ceiling)
	case o.MaxOutputBytes < 0:
		return fmt.Errorf("max-output-bytes is %d: it cannot be negative", o.MaxOutputBytes)
	case o.Session != "" && !isComponent(o.Session):
		return fmt.Errorf("the session %q is not one path component", o.Session)
	case o.Listen == "":
		return nil
	case o.State == "":
		return errors.New("a worker on a socket needs a state directory (--state)")
	case o.Session == "":
		return errors.New("a worker on a socket needs a session (--session)")
	}
	return endpoint.CheckSocketPath(o.Listen)
}

func (o Options) withDefaults() Options {
	if o.Mode == "" {
		o.Mode = tool.Standard
	}
	if o.Ceiling == "" {
		o.Ceiling = tool.Standard
	}
	if o.Lifetime <= 0 {
		o.Lifetime = DefaultLifetime
	}
	if o.ShutdownTimeout <= 0 {
		o.ShutdownTimeout = DefaultShutdownTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Writable = slices.Clone(o.Writable)
	return o
}

// isComponent reports whether s can stand for a session or an identity: one
// path component that means itself.
func isComponent(s string) bool {
	return s != "" && s != "." && s != ".." && len(s) <= 255 && !strings.ContainsAny(s, "/\\\x00")
}
