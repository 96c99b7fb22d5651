//go:build unix

package diskfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes the advisory lock of the open file, which is of whoever opened it: also
// others in this process have to wait. It reports false when somebody has it.
func TryLock(f *os.File) (bool, error) { return flock(f, unix.LOCK_EX) }

// TryShared is [TryLock] for whoever only looks: others may look at once, and the file
// need not be open for writing.
func TryShared(f *os.File) (bool, error) { return flock(f, unix.LOCK_SH) }

func flock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, err
		}
	}
}

// Unlock gives the file's lock back. Closing the file is not enough: a child that
// is just being started holds it too, until its program begins.
func Unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }
