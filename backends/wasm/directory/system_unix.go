//go:build unix

package directory

import (
	"os"
	"syscall"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"golang.org/x/sys/unix"
)

// nonblock keeps the opening of a pipe from waiting for its other end.
const nonblock = syscall.O_NONBLOCK

// setAppend says whether every write goes to the file's end.
func setAppend(f *os.File, enable bool) error {
	return control(f, func(fd int) error {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil {
			return err
		}
		if flags &^= unix.O_APPEND; enable {
			flags |= unix.O_APPEND
		}
		_, err = unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags)
		return err
	})
}

// setTimes sets the times of an open file, whatever its name leads to by now.
func setTimes(f *os.File, atim, mtim int64) error {
	return control(f, func(fd int) error {
		if atim == experimentalsys.UTIME_OMIT || mtim == experimentalsys.UTIME_OMIT {
			var st unix.Stat_t
			if err := unix.Fstat(fd, &st); err != nil {
				return err
			}
			a, m := times(&st)
			if atim == experimentalsys.UTIME_OMIT {
				atim = a
			}
			if mtim == experimentalsys.UTIME_OMIT {
				mtim = m
			}
		}
		return unix.Futimes(fd, []unix.Timeval{unix.NsecToTimeval(atim), unix.NsecToTimeval(mtim)})
	})
}

func control(f *os.File, do func(fd int) error) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := c.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// preciseOf is the number of WASI for what the engine would call EIO; 0 for none.
func preciseOf(e syscall.Errno) uint32 {
	switch e {
	case syscall.EBUSY:
		return wasiBusy
	case syscall.EDQUOT:
		return wasiDquot
	case syscall.EFBIG:
		return wasiFbig
	case syscall.EMFILE, syscall.ENFILE:
		return wasiMfile
	case syscall.EMLINK:
		return wasiMlink
	case syscall.ENOSPC:
		return wasiNospc
	case syscall.ETXTBSY:
		return wasiTxt
	case syscall.EXDEV:
		return wasiXdev
	}
	return 0
}
