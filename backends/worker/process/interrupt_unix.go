//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalJob sends the signal to the process group of the leader or, where it is one that a
// terminal has a key for, does what the key would: the group in its foreground gets it,
// which is a shell's job and not the shell, and what was typed before it is dropped.
// Unlike the key it is not held up by a process that does not read.
func signalJob(term *os.File, leader int, s syscall.Signal) error {
	switch s {
	case unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP:
	default:
		term = nil
	}
	if term == nil {
		return signalGroup(leader, s)
	}
	c, err := term.SyscallConn()
	if err != nil {
		return signalGroup(leader, s) // it was closed: nobody types there any more
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		dropTyped(int(fd))
		failed = unix.IoctlSetInt(int(fd), unix.TIOCSIG, int(s))
	})
	return errors.Join(err, failed)
}
