package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// ErrNotRegular is something else in the place of a file: a pipe, a socket, a device or a
// directory.
var ErrNotRegular = errors.New("it is not a regular file")

// Open opens a regular file for reading, and describes it. What is none is
// [ErrNotRegular].
func Open(name string) (*os.File, fs.FileInfo, error) {
	return OpenRegular(func(flag int) (*os.File, error) { return os.OpenFile(name, flag, 0) })
}

// OpenIn is [Open] for a file below a root.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	return OpenRegular(func(flag int) (*os.File, error) { return root.OpenFile(name, flag, 0) })
}

// NotOpened reports whether an open failed because there is a socket, for which systems
// have words of their own, or a pipe that nobody reads.
func NotOpened(err error) bool {
	return errors.Is(err, syscall.ENXIO) || errors.Is(err, syscall.EOPNOTSUPP)
}

// OpenRegular is [Open] for whoever opens the file otherwise, with the flag that open gets
// and its own: a pipe would keep whoever opens or reads it waiting for ever. It judges what
// was opened, since what a name stands for may be another file a moment later.
func OpenRegular(open func(flag int) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	f, err := open(syscall.O_NONBLOCK)
	if NotOpened(err) {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = ErrNotRegular
	}
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}
