package process

import (
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Options says whose processes a [Manager] keeps and what they may do.
type Options struct {
	// StateDir is the environment's state directory; the registry lies in
	// StateDir/sessions/<Session>. Made 0700 when it is missing.
	StateDir string
	// Session is the session's id, one path component.
	Session string
	// Root is the workspace, an absolute path that exists.
	Root string
	// Shell runs command lines, as "<Shell> -c <line>". Empty: /bin/bash, else
	// /bin/sh, whichever the environment has.
	Shell string
	// Env is the whole environment of commands ("NAME=value"), without what a
	// request adds, TMPDIR, and TERM for a terminal.
	Env []string
	// DefaultMode is the mode of a request without one; empty is standard.
	DefaultMode tool.Mode
	// Ceiling is the widest mode that a request may ask for; empty is standard.
	Ceiling tool.Mode
	// WritablePaths are what standard lets commands write beside Root and the
	// temporary directory; "/" lifts all limits.
	WritablePaths []string
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

// Command is one foreground command. Exactly one of Command, a shell line, and
// Argv is set.
type Command struct {
	Command string
	Argv    []string
	// CWD is a directory in the workspace, absolute or relative to the root;
	// empty is the root.
	CWD string
	// Env is added to the environment of [Options].
	Env map[string]string
	// Stdin is what the command reads; it then sees the end of the file. At
	// most [MaxWriteBytes].
	Stdin []byte
	// Actor is who runs it; empty is the session's main agent.
	Actor string
	// Mode is the permission mode; empty is the default.
	Mode tool.Mode
	// Timeout is the command's own: one that outlives it is adopted as a
	// background process. 0: none. (A limit that kills is the context's.)
	Timeout time.Duration
	// MaxOutputBytes bounds stdout and stderr together; 0 is the Manager's.
	MaxOutputBytes int64
	// Label goes into the record of an adopted command.
	Label string
}

// Result is how a foreground command ended.
type Result struct {
	// ExitCode is -1 when a signal ended the command, and while it still runs.
	ExitCode int
	// Signal names the signal that ended it, such as "SIGKILL".
	Signal string
	// Stdout and Stderr are the first bytes of each, together at most the
	// command's MaxOutputBytes.
	Stdout, Stderr []byte
	// StdoutBytes and StderrBytes count all that was written until the end.
	StdoutBytes, StderrBytes int64
	// StdoutTruncated and StderrTruncated say that bytes were left out.
	StdoutTruncated, StderrTruncated bool
	// Duration is from just before the start to the end.
	Duration time.Duration
	// TimedOut says that the command outlived its own timeout and lives on as
	// the background process PromotedProcessID.
	TimedOut          bool
	PromotedProcessID string
	// Mode is the mode that it ran in, and SandboxDenied the guess that it
	// failed because of it: see [tool.Process].
	Mode          tool.Mode
	SandboxDenied bool
}
