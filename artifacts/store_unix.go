//go:build unix

package artifacts

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock takes the exclusive advisory lock of the open file, or reports that
// somebody else has it.
func tryLock(f *os.File) (bool, error) {
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK), errors.Is(err, unix.EINTR):
		return false, nil
	default:
		return false, err
	}
}

// freeLock gives the file's lock back. Closing the file is not enough: a child that
// is just being started holds it too, until its program begins.
func freeLock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// syncDir makes the names in a directory of the store last.
func (s *Store) syncDir(dir string) error {
	f, err := s.root.Open(dir)
	if err == nil {
		err = errors.Join(f.Sync(), f.Close())
	}
	if err != nil {
		return fmt.Errorf("the artifact store cannot be synced: %w", err)
	}
	return nil
}
