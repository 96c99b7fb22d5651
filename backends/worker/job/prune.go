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

// Prune finds what jobs have left in dir whose workers died, [Options].Dir or
// [InWorkspace], and removes it unless it is a dry run. Found is told of the directory
// of each, and when something was last put there or taken away. That a worker died its lock
// proves, which goes with it; where there is no lock, that none was made for a minute.
// What was changed within olderThan is left alone. Nobody else's jobs run there, but in
// a workspace that containers share.
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
		return removeTree(root, e.Name())
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
