//go:build unix

package store

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// permissionsMatter says that mode bits keep others out.
const permissionsMatter = true

// movesOpenFiles says that a directory can be moved while a file in it is open.
const movesOpenFiles = true

// bellFlags keep an open from following a link, and from waiting for the reader of a pipe.
const bellFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncDir makes renames and removals in the directory survive a crash.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// tryLock takes the file's lock. It reports false when somebody has it.
func tryLock(f *os.File) (bool, error) { return flock(f, unix.LOCK_EX) }

// tryShared is tryLock for whoever only looks: others may look at once, and the file need
// not be open for writing.
func tryShared(f *os.File) (bool, error) { return flock(f, unix.LOCK_SH) }

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

// unlock gives the file's lock back. Closing the file is not enough: a child that
// is just being started holds it too, until its program begins.
func unlock(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_UN) }

// ownedByUs reports whether the user that we run as owns the file. In a
// directory where everybody may write, a name alone says nothing.
func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
