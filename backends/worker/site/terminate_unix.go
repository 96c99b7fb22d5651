//go:build unix

package site

import (
	"errors"

	"golang.org/x/sys/unix"
)

// terminate tells a process to end in order, and wakes it where it was stopped.
// One that is gone already is no error.
func terminate(pid int) error {
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGCONT} {
		if err := unix.Kill(pid, signal); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
	}
	return nil
}
