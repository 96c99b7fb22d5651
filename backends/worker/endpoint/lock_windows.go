package endpoint

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset lies beyond the pid that the file holds, because a locked range
// cannot be read by others on Windows.
const lockOffset = 1 << 30

// unlock gives the file's lock back. The system does that some time after
// the file is closed.
func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockOffset})
}

func tryLock(f *os.File) error {
	err := windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return ErrLocked
	}
	return err
}
