package process

import (
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/rlimit"
)

// Command is one foreground command. Exactly one of Command, a shell line, and
// Argv is set.
type Command struct {
	Command string
	// Argv is run without a shell; a first element without a slash is looked up
	// in the PATH of the command's environment.
	Argv []string
	// CWD is a directory in the workspace, absolute or relative to the root;
	// empty is the root.
	CWD string
	// Env is added to the environment of [Options].
	Env map[string]string
	// Stdin is what the command reads; it then sees the end of the file. At
	// most [MaxWriteBytes].
	Stdin []byte
	// Actor is who runs it; the zero Actor is the session's main agent. A side
	// chat runs in read_only, whatever Mode says.
	Actor tool.Actor
	// Mode is the permission mode; empty is the default.
	Mode tool.Mode
	// Writable are absolute paths that the command may write beside those of
	// its session when its mode is standard, such as the common directory of a
	// linked git worktree. They are checked by whoever sets them.
	Writable []string
	// Timeout is the command's own: one that outlives it is adopted as a
	// background process, unless it is Alone. 0: none. (A limit that kills is the
	// context's.)
	Timeout time.Duration
	// MaxOutputBytes bounds stdout and stderr together; 0 is the Manager's.
	MaxOutputBytes int64
	// Label goes into the record of an adopted command.
	Label string
	// Place, unless nil, is a directory of the command's own.
	Place *Place
	// Limits bound each process of the command, apart from what bounds it anyway.
	Limits rlimit.Limits
	// Alone says that nothing of the command outlives it: what it has left running
	// is killed before Run returns, and an error says what could not be. One that
	// outlives its Timeout is killed.
	Alone bool
}

// Place is a directory of a command's own, outside of the workspace. All paths
// are absolute. A command that has one may write it in every mode; unless it
// works in a CWD it may, in the mode standard, write it instead of the workspace.
type Place struct {
	// Dir is the whole of it.
	Dir string
	// Work, in Dir, is where the command runs that has no CWD.
	Work string
	// Temp, in Dir, is its directory for temporary files.
	Temp string
}

// Result is how a foreground command ended.
type Result struct {
	// ExitCode is -1 when a signal ended the command, and while it still runs.
	ExitCode int
	// Signal names the signal that ended it, such as "SIGKILL".
	Signal string
	// Stdout and Stderr are together at most the command's MaxOutputBytes.
	// What does not fit is left out of the middle, where a line says how many
	// bytes are missing; characters at that place are not cut.
	Stdout, Stderr []byte
	// StdoutBytes and StderrBytes count all that was written until the end.
	StdoutBytes, StderrBytes int64
	// StdoutTruncated and StderrTruncated say that bytes were left out.
	StdoutTruncated, StderrTruncated bool
	// Duration is from just before the start to the end.
	Duration time.Duration
	// TimedOut says that the command outlived its own timeout and lives on as
	// the background process PromotedProcessID, or was killed where that is empty.
	TimedOut          bool
	PromotedProcessID string
	// Mode is the mode that it ran in.
	Mode tool.Mode
	// SandboxDenied is a guess that the mode made the command fail, from
	// outside, since the kernel tells nobody: the command was confined, ended
	// with a code other than 0, and the end of its output holds the words with
	// which programs report EACCES, or EXDEV, which is Landlock's answer to
	// some renames. It can be wrong both ways: a file that the user may not
	// read looks the same, and a program may keep its reason to itself.
	SandboxDenied bool
	// OOMKilled says that the kernel ended it for want of memory.
	OOMKilled tool.OOMKilled
}
