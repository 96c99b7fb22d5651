//go:build unix

package endpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// unlock gives the file's lock back. Closing the file is not enough: a child that
// is just being started holds it too, until its program begins.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return err
		}
	}
}
