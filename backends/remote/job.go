package remote

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

var _ backends.JobRunner = (*Environment)(nil)

// RunJob runs a job at the far end, which keeps its time and so can tell how far
// it came. A far end that runs none is [tool.Unsupported].
func (e *Environment) RunJob(ctx context.Context, r backends.JobRequest) (backends.JobResult, error) {
	const what = "running a job"
	if err := r.Check(); err != nil {
		return backends.JobResult{}, err
	}
	mode, err := e.mode(r.Actor, r.Mode)
	if err != nil {
		return backends.JobResult{}, err
	}
	if limit := e.b.Profile.Timeout; r.Timeout <= 0 || limit > 0 && limit < r.Timeout {
		r.Timeout = limit
	}
	caller := ctx
	if r.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Timeout+e.o.jobGrace)
		defer cancel()
	}
	data, body := wire.NewJob(r)
	data.Actor, data.PermissionMode = e.actor(r.Actor), mode
	if r.Actor.Kind == tool.ActorSideChat {
		data.ActorKind = tool.ActorSideChat
	}
	reply, err := e.do(ctx, func(c *connection) (wire.ClientRequest, error) {
		if !c.Has(wire.CapJob) || !c.Has(wire.CapBulk) {
			return wire.ClientRequest{}, tool.Errorf(tool.Unsupported, "this environment cannot run jobs: its far end lacks the capability %s", wire.CapJob).
				WithHint("run the program with the tool bash, or choose a profile whose environment runs jobs")
		}
		return wire.ClientRequest{Method: wire.MethodJobRun, Data: data, Body: body}, nil
	})
	switch {
	case err == nil:
		return jobResult(reply)
	case tool.KindOf(err) == tool.Timeout && ctx.Err() != nil && caller.Err() == nil:
		return backends.JobResult{}, tooLong("the job", r.Timeout, err)
	default:
		return backends.JobResult{}, about(what, err)
	}
}

// jobResult is what a job's reply says.
func jobResult(reply wire.Reply) (backends.JobResult, error) {
	var done wire.JobDone
	if err := reply.Decode(&done); err != nil {
		return backends.JobResult{}, about("running a job", err)
	}
	result, err := done.Result(reply.Body)
	if err == nil && len(result.Files) > maxJobFiles {
		err = foreign("running a job", "%d files; at most %d are taken", len(result.Files), maxJobFiles)
	}
	return result, err
}
