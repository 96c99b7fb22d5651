package local

import (
	"context"
	"io"
	"strings"

	"github.com/caisson-dev/caisson/backends"
)

var _ backends.JobRunner = (*environment)(nil)

// fromWorker begins the tokens of what jobs left: the worker has these snapshots,
// the near half all others.
const fromWorker = "worker/"

// RunJob runs a job in the worker.
func (e *environment) RunJob(ctx context.Context, r backends.JobRequest) (backends.JobResult, error) {
	if err := r.Check(); err != nil {
		return backends.JobResult{}, err
	}
	if err := e.lines.ofJob(r); err != nil {
		return backends.JobResult{}, err
	}
	if err := e.root.Check(); err != nil {
		return backends.JobResult{}, err
	}
	far, err := e.worker(ctx)
	if err != nil {
		return backends.JobResult{}, err
	}
	result, err := far.RunJob(ctx, r)
	for i := range result.Files {
		result.Files[i].Token = fromWorker + result.Files[i].Token
	}
	return result, err
}

// exportOfWorker streams a snapshot of the far half, if the token names one.
func (e *environment) exportOfWorker(ctx context.Context, token string) (content io.ReadCloser, ok bool, err error) {
	token, ok = strings.CutPrefix(token, fromWorker)
	if !ok {
		return nil, false, nil
	}
	far, err := e.worker(ctx)
	if err != nil {
		return nil, true, err
	}
	content, err = far.Export(ctx, token)
	return content, true, err
}
