package workspace

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// openUnnamed makes an empty file in a directory that goes with its last
// descriptor unless it gets a name. A file system that has none is
// [errors.ErrUnsupported].
func openUnnamed(parent *os.Root, mode fs.FileMode) (*temp, error) {
	dir, err := parent.Open(".")
	if errors.Is(err, fs.ErrPermission) {
		return nil, errors.ErrUnsupported // it can be written and not read
	}
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(dir.Fd()), ".", unix.O_WRONLY|unix.O_TMPFILE|unix.O_CLOEXEC, uint32(mode.Perm()))
	if err != nil {
		_ = dir.Close() // it was only read
		for _, unknown := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.ENOENT, unix.EINVAL} {
			if errors.Is(err, unknown) {
				return nil, errors.ErrUnsupported
			}
		}
		return nil, &fs.PathError{Op: "create", Path: dir.Name(), Err: err}
	}
	return &temp{parent: parent, dir: dir, f: os.NewFile(uintptr(fd), dir.Name())}, nil
}

// linkUnnamed gives an unnamed file a name.
func linkUnnamed(t *temp, name string) error {
	self := "/proc/self/fd/" + strconv.Itoa(int(t.f.Fd()))
	err := unix.Linkat(unix.AT_FDCWD, self, int(t.dir.Fd()), name, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return &os.LinkError{Op: "link", Old: self, New: name, Err: err}
	}
	return nil
}

// lock marks a file as that of a living writer.
func lock(f *os.File) error {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
	return nil
}

// sweep removes the complete files in a directory that nobody has a lock on: their
// writers were killed just before they were put in their places. What cannot be
// looked at stays.
func sweep(dir *os.Root) {
	f, err := dir.Open(".")
	if err != nil {
		return
	}
	defer f.Close()
	names, err := f.Readdirnames(maxEntries)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, lockedPrefix) {
			sweepOne(dir, name)
		}
	}
}

func sweepOne(dir *os.Root, name string) {
	info, err := dir.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer f.Close()
	// A writer that finishes meanwhile takes the name away itself.
	if lock(f) == nil {
		_ = dir.Remove(name)
	}
}
