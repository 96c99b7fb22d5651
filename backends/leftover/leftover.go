// Package leftover finds what jobs have left on this machine whose workers were
// killed, for the backends that run them here.
package leftover

import (
	"errors"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/job"
)

// Jobs are the directories of dead jobs in the environments of this kind that sessions
// are bound to; without o.DryRun they are removed. Where says which directories the
// jobs of an environment have theirs in.
func Jobs(kind string, o backends.PruneOptions, where func(at backends.Binding) []string) ([]backends.Resource, error) {
	var found []backends.Resource
	var failed error
	looked := map[string]bool{} // several sessions may have one workspace
	for _, at := range o.Bound {
		if at.Profile.Backend != kind {
			continue
		}
		for _, dir := range where(at) {
			dir = filepath.Clean(dir)
			if looked[dir] {
				continue
			}
			looked[dir] = true
			left, err := job.Prune(dir, o.OlderThan, o.DryRun)
			if err != nil {
				failed = errors.Join(failed, tool.Errorf(tool.Internal, "look for what killed jobs have left: %w", err).WithPath(dir))
			}
			for _, l := range left {
				found = append(found, backends.Resource{
					Backend: kind, Kind: "directory", ID: l.Dir, Environment: at.Environment, Session: at.Session, CreatedAt: l.Changed,
					Reason: "a job's, whose worker was killed: nobody holds its lock",
				})
			}
		}
	}
	return found, failed
}
