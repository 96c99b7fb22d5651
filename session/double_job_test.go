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

// RunJob notes what it was asked. A job "wait" ends with its context; a job
// "leave" leaves its inputs, of which "liar" is longer than it says.
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
	result := backends.JobResult{Stdout: []byte("done")}
	if len(r.Argv) > 0 && r.Argv[0] == "leave" {
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		for _, in := range r.Inputs {
			f := backends.JobFile{Path: in.Path, Size: int64(len(in.Data)), Token: "job/" + in.Path}
			if string(in.Data) == "liar" {
				f.Size++
			}
			e.at.exports[f.Token] = in.Data
			result.Files = append(result.Files, f)
		}
		result.FilesDropped = 1
	}
	return result, nil
}
