package diskfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is where the locked byte is: far behind what the file holds, such as its
// owner's pid, which others must be able to read while the lock is held.
const lockOffset = 1 << 30

// TryLock takes the advisory lock of the open file, which is of whoever opened it: also
// others in this process have to wait. It reports false when somebody has it.
func TryLock(f *os.File) (bool, error) { return lockByte(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// TryShared is [TryLock] for whoever only looks: others may look at once, and the file
// need not be open for writing.
func TryShared(f *os.File) (bool, error) { return lockByte(f, 0) }

func lockByte(f *os.File, how uint32) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: lockOffset})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION), errors.Is(err, windows.ERROR_IO_PENDING):
		return false, nil
	}
	return false, err
}

// Unlock gives the file's lock back. The system does that some time after
// the file is closed.
func Unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockOffset})
}
