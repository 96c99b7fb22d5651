package backends

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// JobRunner is an Environment that runs jobs: one program to its end, in a
// directory of its own unless the request says where.
type JobRunner interface {
	// RunJob runs the job and returns when nothing of it runs any more. A program
	// that fails, is killed or runs out of time is a result; an environment that
	// runs none answers [tool.Unsupported]. When ctx ends the job's processes are
	// killed and its directory is removed. A job whose answer was lost is
	// [tool.OutcomeUnknown] and is never repeated.
	RunJob(ctx context.Context, r JobRequest) (JobResult, error)
}

// JobRequest asks for one job. Either Argv or Script stands.
type JobRequest struct {
	// ID names the job in events and errors; unique within a session.
	ID     string
	Argv   []string
	Script *JobScript
	// Inputs are put into the job's directory, or below CWD, before it begins.
	Inputs []JobInput
	// CWD is a directory of the workspace to run in, where nothing is removed
	// afterwards; empty means a fresh directory that is gone when the job is over.
	CWD string
	// Stdin is all that the program reads from its standard input.
	Stdin []byte
	// Environment are variables beside those of the environment itself.
	Environment map[string]string
	// Actor and Mode are as in [tool.Request].
	Actor tool.Actor
	Mode  tool.Mode
	// Timeout bounds the job by the wall clock, CPUTime each of its processes by
	// the processor; 0 means no limit beside the environment's.
	Timeout time.Duration
	CPUTime time.Duration
	// Memory bounds each process of the job, in bytes; 0 means no limit beside the
	// environment's.
	Memory int64
	// MaxOutputBytes bounds standard output and standard error together; 0 means
	// the environment's limit.
	MaxOutputBytes int64
	// Collect are globs of the files that come back; empty means all that the job
	// left in its own directory, and none with CWD. Inputs and the script are left
	// out.
	Collect []string
}

// JobScript is a program text and the interpreter that gets its file's name.
type JobScript struct {
	Interpreter string
	Source      string
}

// JobInput is one file for a job.
type JobInput struct {
	// Path is relative, has slashes, and stays inside.
	Path string
	Data []byte
}

// JobResult is what a job came to.
type JobResult struct {
	Stdout, Stderr []byte
	// ExitCode is -1 where a signal ended the program; Signal names it then.
	ExitCode int
	Signal   string
	// TimedOut says that the job was killed at its time limit, Truncated that
	// more was written than is returned.
	TimedOut  bool
	Truncated bool
	// Files are immutable snapshots of what was collected, each to be fetched by
	// [Environment.Export] and its token.
	Files []JobFile
	// FilesDropped counts files that were not collected, because there were more,
	// or larger ones, than a job may leave.
	FilesDropped int
	// FuelRemaining is what was left of a WebAssembly guest's fuel; nil elsewhere.
	FuelRemaining *uint64
}

// JobFile is a file that a job left.
type JobFile struct {
	Path  string
	Size  int64
	Token string
}
