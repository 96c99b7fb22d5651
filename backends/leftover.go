package backends

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// JobsLeft are the directories that jobs whose workers were killed have left on this
// machine, in the environments of this kind that sessions are bound to. Where says in which
// directories the jobs of an environment have theirs. Prune looks through one of these, each
// of which is looked at once: it tells of what it has found, and removes it unless it is a
// dry run.
func (o PruneOptions) JobsLeft(kind string, where func(at Binding) []string,
	prune func(dir string, olderThan time.Duration, dryRun bool, found func(dir string, changed time.Time)) error,
) ([]Resource, error) {
	var all []Resource
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
			err := prune(dir, o.OlderThan, o.DryRun, func(dir string, changed time.Time) {
				all = append(all, Resource{
					Backend: kind, Kind: "directory", ID: dir, Environment: at.Environment, Session: at.Session, CreatedAt: changed,
					Reason: "a job's, whose worker was killed: nobody holds its lock",
				})
			})
			if err != nil {
				failed = errors.Join(failed, tool.Errorf(tool.Internal, "look for what killed jobs have left: %w", err).WithPath(dir))
			}
		}
	}
	return all, failed
}
