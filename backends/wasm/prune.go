package wasm

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/backends/worker/job"
)

// Prune removes what jobs have left whose service was killed, and caches of machine
// code that no program of this version can use and that nobody has used for a week.
// All else that environments keep lies in their state directories and goes with them.
func (b *Backend) Prune(_ context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	left, jobs := o.JobsLeft(profile.WASM, jobsDirs, job.Prune)
	stale, caches := b.pruneCaches(o)
	return append(left, stale...), errors.Join(jobs, caches)
}

// jobsDirs are where the jobs of an environment may have directories.
func jobsDirs(at backends.Binding) []string {
	dirs := []string{jobsDir(at)}
	if p := at.Profile.Preopens; len(p) > 0 {
		dirs = append(dirs, job.InWorkspace(p[0].Host))
	}
	return dirs
}

func (b *Backend) pruneCaches(o backends.PruneOptions) ([]backends.Resource, error) {
	if b.o.CacheDir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(b.o.CacheDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "look at the cache of compiled modules: %w", err).WithPath(b.o.CacheDir)
	}
	var found []backends.Resource
	var failed error
	for _, e := range entries {
		dir := filepath.Join(b.o.CacheDir, e.Name())
		if !e.IsDir() || e.Name() == engine.CacheVersion() {
			continue
		}
		last, err := lastUse(dir)
		if err != nil || time.Since(last) < max(o.OlderThan, staleAge) {
			continue // it is being used, or removed
		}
		if !o.DryRun {
			if err := os.RemoveAll(dir); err != nil {
				failed = errors.Join(failed, tool.Errorf(tool.Internal, "remove a cache of compiled modules: %w", err).WithPath(dir))
				continue
			}
		}
		found = append(found, backends.Resource{
			Backend: profile.WASM, Kind: "cache", ID: dir, CreatedAt: last,
			Reason: "machine code of another version of this program, which no one has added to for a week",
		})
	}
	return found, failed
}

// lastUse is when something was last added to a cache.
func lastUse(dir string) (time.Time, error) {
	var last time.Time
	err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
		return err
	})
	return last, err
}
