//go:build unix

package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A directory is synced where that can be done, and one that is not there is told.
func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	if err := errors.Join(SyncDir(dir), SyncDirIn(root, ".")); err != nil {
		t.Error(err)
	}
	for _, err := range []error{SyncDir(filepath.Join(dir, "none")), SyncDirIn(root, "none")} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a missing directory: %v", err)
		}
	}
	const cannot = "/dev/fd" // of a file system that keeps nothing
	if d, err := os.Open(cannot); err == nil {
		defer d.Close()
		if err := d.Sync(); !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) {
			return // it can be synced on this system
		}
		if err := SyncDir(cannot); err != nil {
			t.Errorf("one that cannot be synced: %v", err)
		}
	}
}
