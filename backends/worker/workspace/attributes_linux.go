package workspace

import (
	"bytes"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// maxXattrs bounds the names and each value of extended attributes: the most
// that the kernel gives.
const maxXattrs = 64 << 10

// copyXattrs copies extended attributes, access lists among them. One that the
// user may not set, such as a security label, is left as the system made it.
func copyXattrs(to, from *os.File) error {
	size, err := unix.Flistxattr(int(from.Fd()), nil)
	if err != nil || size == 0 || size > maxXattrs {
		return ignoreUnsupported(err)
	}
	names := make([]byte, size)
	if size, err = unix.Flistxattr(int(from.Fd()), names); err != nil {
		return ignoreUnsupported(err)
	}
	value := make([]byte, maxXattrs)
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names[:size], []byte{0}), []byte{0}) {
		n, err := unix.Fgetxattr(int(from.Fd()), string(name), value)
		if err == nil {
			err = unix.Fsetxattr(int(to.Fd()), string(name), value[:n], 0)
		}
		if err := ignoreUnsupported(err); err != nil {
			return &os.PathError{Op: "setxattr " + string(name), Path: to.Name(), Err: err}
		}
	}
	return nil
}

func ignoreUnsupported(err error) error {
	for _, e := range []error{unix.ENOTSUP, unix.EPERM, unix.EACCES, unix.ENODATA, unix.ENOSYS, unix.ERANGE} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return err
}

// allocate sets room aside for a file of size bytes.
func allocate(f *os.File, size int64) error {
	return ignoreUnsupported(unix.Fallocate(int(f.Fd()), 0, 0, size))
}
