package process

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Options says whose processes a [Manager] keeps and what they may do.
type Options struct {
	// StateDir is the environment's state directory, an absolute path. Made
	// 0700 when it is missing.
	StateDir string
	// Session is the session's id, one path component.
	Session string
	// Root is the workspace, an absolute path that exists.
	Root string
	// Shell runs command lines, as "<Shell> -c <line>". Empty: /bin/bash, else
	// /bin/sh, whichever the environment has.
	Shell string
	// Env is the whole environment of commands ("NAME=value"), without what a
	// request adds, and TMPDIR, PWD, CAISSON_PROCESS, and TERM for a terminal.
	Env []string
	// DefaultMode is the mode of a request without one; empty is standard.
	DefaultMode tool.Mode
	// Ceiling is the widest mode that a request may ask for; empty is standard.
	Ceiling tool.Mode
	// WritablePaths are what standard lets commands write beside Root and the
	// temporary directory; "/" lifts all limits.
	WritablePaths []string
	// Shared says that other sessions work in the same environment: confined
	// commands then signal only what this one's have started, where the kernel
	// can see to that (see [confine.Policy]).
	Shared bool
	// Contained has the kernel end commands before this program where memory is short.
	Contained bool
	// MaxOutputBytes is what one foreground command may return when it does not
	// say; 0 is [DefaultMaxOutputBytes].
	MaxOutputBytes int64
	// OnEvent is told of every change, one at a time and in order. It must not
	// block for long and must not call the Manager. Nil: nobody listens.
	OnEvent func(tool.ProcessEvent)
	// AdoptOrphans makes the whole program the reaper of its descendants, on
	// Linux: nothing that a command leaves behind becomes a zombie or outlives
	// Close. At most one Manager in a program may ask for it, and then every
	// child of the program must be started by that Manager.
	AdoptOrphans bool
	// ABI reads the version of Landlock; nil is the kernel's.
	ABI func() (int, error)
	// Log takes what has no caller to return to; nil discards it.
	Log *slog.Logger
}

// withDefaults checks o and fills it in.
func (o Options) withDefaults() (Options, error) {
	if o.Session == "" || o.Session == "." || o.Session == ".." || strings.ContainsAny(o.Session, "/\\\x00") {
		return o, tool.Errorf(tool.InvalidParams, "the session %q is not one path component", o.Session)
	}
	if !filepath.IsAbs(o.StateDir) {
		return o, tool.Errorf(tool.InvalidParams, "the state directory %q is not absolute", o.StateDir).WithPath(o.StateDir)
	}
	root, err := filepath.EvalSymlinks(o.Root)
	if err != nil || !filepath.IsAbs(root) {
		return o, tool.Errorf(tool.InvalidParams, "the workspace %q is not a directory that exists: %w", o.Root, err).WithPath(o.Root)
	}
	o.Root = root
	if o.DefaultMode == "" {
		o.DefaultMode = tool.Standard
	}
	if o.Ceiling == "" {
		o.Ceiling = tool.Standard
	}
	if !o.DefaultMode.Valid() || !o.Ceiling.Valid() || !o.DefaultMode.Within(o.Ceiling) {
		return o, tool.Errorf(tool.InvalidParams, "the permission mode %q is not within the ceiling %q", o.DefaultMode, o.Ceiling)
	}
	if o.MaxOutputBytes <= 0 {
		o.MaxOutputBytes = DefaultMaxOutputBytes
	}
	if o.OnEvent == nil {
		o.OnEvent = func(tool.ProcessEvent) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
