//go:build unix

package diskfile

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes what was made, renamed and removed in the directory survive a crash of
// the machine, where the file system can.
func SyncDir(dir string) error { return syncOpened(os.Open(dir)) }

// SyncDirIn is [SyncDir] for a directory below a root.
func SyncDirIn(root *os.Root, dir string) error { return syncOpened(root.Open(dir)) }

func syncOpened(dir *os.File, err error) error {
	if err != nil {
		return err
	}
	err = dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, dir.Close())
}
