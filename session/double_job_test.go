package session_test

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// ranJob is a job as the double was asked for it.
type ranJob struct {
	b backends.Binding
	r backends.JobRequest
}

// RunJob notes what it was asked. A job "wait" ends with its context.
func (e *doubleEnvironment) RunJob(ctx context.Context, r backends.JobRequest) (backends.JobResult, error) {
	e.w.set(func() { e.w.jobs = append(e.w.jobs, ranJob{e.b, r}) })
	if len(r.Argv) > 0 && r.Argv[0] == "wait" {
		e.w.mu.Lock()
		waiting := e.w.waiting
		e.w.mu.Unlock()
		if waiting != nil {
			waiting <- struct{}{}
		}
		<-ctx.Done()
		return backends.JobResult{}, tool.Errorf(tool.Cancelled, "cancelled: %w", context.Cause(ctx))
	}
	return backends.JobResult{Stdout: []byte("done")}, nil
}
