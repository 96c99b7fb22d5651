//go:build unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ErrNotDirectory is what opening something else as a directory fails with.
const ErrNotDirectory = syscall.ENOTDIR

// Dir is an open directory of a workspace. Children are opened by one name
// that is never followed when it is a link, so that a walk stays inside
// whatever is swapped meanwhile. It costs one system call a child where an
// [os.Root] opens every directory on the way.
type Dir struct{ f *os.File }

func (r *Root) newDir(f *os.File, _ string) (*Dir, error) { return &Dir{f}, nil }

// OpenDir opens a directory in d. A link fails.
func (d *Dir) OpenDir(child string) (*Dir, error) {
	fd, err := d.openat(child, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Dir{os.NewFile(uintptr(fd), filepath.Join(d.f.Name(), child))}, nil
}

// Open opens a file in d for reading. A link fails, a pipe reads as empty or
// fails; neither blocks.
func (d *Dir) Open(child string) (io.ReadCloser, error) {
	fd, err := d.openat(child, unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return file(fd), nil
}

func (d *Dir) openat(child string, flags int) (int, error) {
	for {
		fd, err := unix.Openat(int(d.f.Fd()), child, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
		if err == nil {
			return fd, nil
		}
		if !errors.Is(err, unix.EINTR) {
			return -1, &fs.PathError{Op: "open", Path: filepath.Join(d.f.Name(), child), Err: err}
		}
	}
}

// Entries reads the whole directory, in no order.
func (d *Dir) Entries() ([]Entry, error) {
	list, err := d.f.ReadDir(-1)
	return entries(list), err
}

// Close closes the directory.
func (d *Dir) Close() error { return d.f.Close() }

// file reads a descriptor without the poller, which regular files never need.
type file int

func (f file) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		n, err := unix.Read(int(f), p)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, os.NewSyscallError("read", err)
		case n == 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (f file) Close() error { return unix.Close(int(f)) }
