//go:build unix

package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// errOwner says that a new file cannot be given to the old one's owner.
var errOwner = errors.New("the file's owner cannot be kept")

// keepAttributes gives f the owner, mode and extended attributes of the file
// it will replace. old is nil when that file is being executed.
func keepAttributes(f, old *os.File, info fs.FileInfo) error {
	want, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errOwner
	}
	mine, err := f.Stat()
	if err != nil {
		return err
	}
	if have, ok := mine.Sys().(*syscall.Stat_t); !ok || have.Uid != want.Uid || have.Gid != want.Gid {
		if err := f.Chown(int(want.Uid), int(want.Gid)); err != nil {
			return errors.Join(errOwner, err)
		}
	}
	if old != nil {
		if err := copyXattrs(f, old); err != nil {
			return err
		}
	}
	// Last, as changing the owner clears the set-id bits.
	return f.Chmod(info.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky))
}

// inPlaceHelps reports whether rewriting the old file may work where putting a
// new one in its place did not: another owner, a directory that is read-only,
// or a file that is a mount point.
func inPlaceHelps(err error) bool {
	for _, e := range []error{errOwner, unix.EACCES, unix.EPERM, unix.EROFS, unix.EBUSY, unix.EXDEV} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// busy reports whether a file cannot be opened for writing only because it is
// being executed; it can be replaced all the same.
func busy(err error) bool { return errors.Is(err, unix.ETXTBSY) }

// closeBeforeRename is needed on other systems.
func closeBeforeRename(*os.File) {}
