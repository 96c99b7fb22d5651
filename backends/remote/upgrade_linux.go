package remote

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// openToAll lets every user connect to the socket at path, and to nothing else that may
// stand there by now: a link is not followed.
func openToAll(path string) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return fmt.Errorf("%s is no socket any more", path)
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o666)
}
