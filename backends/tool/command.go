package tool

import "time"

// Command is one foreground command: it runs while somebody waits for it.
// Exactly one of Line and Argv is set.
type Command struct {
	// Line is a shell line.
	Line string
	// Argv is run as it is, without a shell; its first element is looked up in
	// the PATH of the session's environment.
	Argv []string
	// Dir is an absolute directory; "" is the workspace.
	Dir string
	// Env is added to the session's environment, as "NAME=value"; later ones win.
	Env []string
	// Actor is who runs it, and Mode what it may write; never empty, and already
	// checked against the ceiling.
	Actor Actor
	Mode  Mode
	// Writable are absolute paths that the command may write beside those of
	// its session when its mode is [Standard], such as the common directory of
	// a linked git worktree. They are checked by whoever sets them.
	Writable []string
	// AdoptAfter is how long the command may stay in the foreground. One that
	// takes longer goes on as a background process of the actor; 0 means that
	// only the end of the context ends the wait, and the command with it.
	AdoptAfter time.Duration
	// MaxOutput bounds stdout and stderr together, in bytes, kept from both
	// ends of each; never 0.
	MaxOutput int64
}

// CommandResult is how a foreground command ended, or what it had done when it
// was adopted. A command that exits non-zero is no error.
type CommandResult struct {
	Stdout, Stderr                   []byte
	StdoutTruncated, StderrTruncated bool
	// ExitCode is -1 for a command that still runs or was ended by a signal.
	ExitCode int
	// Signal names the signal that ended the command, such as "SIGKILL".
	Signal   string
	Duration time.Duration
	// Adopted is the background process that the command became.
	Adopted *Process
	// SandboxDenied says that the confinement probably refused a write.
	SandboxDenied bool
}
