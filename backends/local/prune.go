package local

import (
	"context"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/job"
)

// Prune removes what jobs have left whose workers were killed. All else that a local
// environment keeps lies in the state directory and goes with it, and its worker ends
// by itself.
func (*Backend) Prune(_ context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	return o.JobsLeft(profile.Local, func(at backends.Binding) []string {
		return []string{worker.JobsDir(workerState(at), at.Session), job.InWorkspace(workspaceDir(at))}
	}, job.Prune)
}
