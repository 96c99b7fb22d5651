package job

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// InWorkspace is where jobs have their directories that cannot be in [Options].Dir, in
// a workspace at root.
func InWorkspace(root string) string { return filepath.Join(root, ".caisson-jobs") }

// Prune finds the directories of jobs in dir, which is [Options].Dir or [InWorkspace],
// whose workers have died, and removes them unless it is a dry run. A worker has died when
// nobody holds the lock in the job's directory, or when that has had none for a minute: the
// lock of a living worker in another container that shares the workspace counts too. What
// was changed within olderThan is left alone. Found is told of each directory, and when
// something was last put there or taken away.
func Prune(dir string, olderThan time.Duration, dryRun bool, found func(dir string, changed time.Time)) error {
	root, err := workspace.OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer root.Close()
	entries, err := list(root, ".", maxEntries)
	errs := []error{err}
	for _, e := range entries {
		if !e.IsDir() || !ours(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && time.Since(info.ModTime()) < olderThan {
			continue
		}
		var died bool
		if err == nil {
			died, err = pruneOne(root, dir, info, dryRun)
		}
		if err == nil && died {
			found(filepath.Join(dir, e.Name()), info.ModTime())
		}
		errs = append(errs, err)
	}
	if !dryRun {
		_ = os.Remove(dir) // unless somebody's is left in it
	}
	return errors.Join(errs...)
}

// pruneOne removes the directory of one job, unless its worker lives or it is a dry
// run. It reports whether that has died.
func pruneOne(root *os.Root, dir string, e fs.FileInfo, dryRun bool) (died bool, err error) {
	remove := func() error {
		if dryRun {
			return nil
		}
		return workspace.RemoveAll(root, e.Name())
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	lock, err := endpoint.AcquireExisting(now, filepath.Join(dir, e.Name(), lockFile))
	switch {
	case err == nil:
		return true, errors.Join(remove(), lock.Unlock())
	case errors.Is(err, endpoint.ErrLocked):
		return false, nil // it runs
	case !errors.Is(err, fs.ErrNotExist):
		return false, err
	case time.Since(e.ModTime()) < unlockedAge:
		return false, nil
	}
	return true, remove()
}
