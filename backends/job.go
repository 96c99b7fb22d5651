package backends

import (
	"context"

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

// What a job is asked for and comes to is the same at both ends of the wire.
type (
	// JobRequest asks for one job.
	JobRequest = tool.JobRequest
	// JobScript is a program text and what runs it.
	JobScript = tool.JobScript
	// JobInput is one file for a job.
	JobInput = tool.JobInput
	// JobResult is what a job came to.
	JobResult = tool.JobResult
	// JobFile is a file that a job left.
	JobFile = tool.JobFile
)
