//go:build unix && !linux

package remote

import (
	"errors"
	"syscall"
)

// machine adds nothing to the host's name.
func machine() string { return "" }

// processStart tells only whether the process runs.
func processStart(pid int) (start string, running bool) {
	return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}
