package tool

import (
	"errors"
	"runtime"
	"strings"
	"syscall"
)

// WithDisk makes e, when a disk without room is its cause, say so first, and where
// and what to do: the words of the system alone tell neither. Dir is a directory
// on the disk. Every other error stays as it is. It returns e.
func (e *Error) WithDisk(dir string) *Error {
	if !IsDiskFull(e) {
		return e
	}
	e.Message = "no space is left on the disk of " + dir + ": " + e.Message
	e.Path = dir
	return e.WithHint("make room on that disk (df %s), and do it again: nothing that was there is lost", dir)
}

// IsDiskFull reports whether err has a disk without room, or a quota without, as
// its cause. The words of another process count, which are all there is of its
// error.
func IsDiskFull(err error) bool {
	const windowsDiskFull = syscall.Errno(112)
	switch {
	case err == nil:
		return false
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return true
	case runtime.GOOS == "windows" && errors.Is(err, windowsDiskFull):
		return true
	}
	return strings.Contains(err.Error(), syscall.ENOSPC.Error()) || strings.Contains(err.Error(), syscall.EDQUOT.Error())
}
