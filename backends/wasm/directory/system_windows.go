package directory

import (
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

const nonblock = 0

// setAppend has no counterpart for a file that is open.
func setAppend(_ *os.File, enable bool) error {
	if enable {
		return syscall.ENOTSUP
	}
	return nil
}

// setTimes sets the times of an open file.
func setTimes(f *os.File, atim, mtim int64) error {
	a, m := windows.NsecToFiletime(atim), windows.NsecToFiletime(mtim)
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = windows.SetFileTime(windows.Handle(fd), nil, &a, &m) }); err != nil {
		return err
	}
	return failed
}

func preciseOf(syscall.Errno) uint32 { return 0 }
