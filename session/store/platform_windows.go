package store

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// permissionsMatter is false: access lists are inherited from the user's own
// directories, and mode bits say nothing.
const permissionsMatter = false

// movesOpenFiles is false: Windows keeps a directory in its place while a file in it
// is open.
const movesOpenFiles = false

// bellFlags are none: links need rights there that users do not have.
const bellFlags = 0

// syncDir does nothing: Windows has no way to sync a directory, and NTFS
// journals its entries.
func syncDir(string) error { return nil }

// lockOffset is where the locked byte is: far behind the pid, which others
// must be able to read while the lock is held.
const lockOffset = 1 << 30

// tryLock takes the file's lock. It reports false when somebody has it.
func tryLock(f *os.File) (bool, error) { return lockByte(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// tryShared is tryLock for whoever only looks: others may look at once, and the file need
// not be open for writing.
func tryShared(f *os.File) (bool, error) { return lockByte(f, 0) }

func lockByte(f *os.File, how uint32) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), how|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &windows.Overlapped{Offset: lockOffset})
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, windows.ERROR_LOCK_VIOLATION):
		return false, nil
	}
	return false, err
}

// unlock gives the file's lock back. The system does that some time after
// the file is closed.
func unlock(f *os.File) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &windows.Overlapped{Offset: lockOffset})
}

// ownedByUs is true: the directories lie in the user's profile.
func ownedByUs(os.FileInfo) bool { return true }
