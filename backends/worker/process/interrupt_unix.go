//go:build linux || darwin

package process

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// signalJob sends the signal to the process group of the leader or, where it is one that a
// terminal has a key for, to the group in the terminal's foreground, which is a shell's job
// and not the shell; what was typed before it is dropped, as for the key. It is sent however
// the terminal is set up, and is not held up by a process that does not read. Systems that
// have no such request for terminals, as some sandboxes, send it to the leader's group.
func signalJob(term *os.File, leader int, s syscall.Signal) error {
	if term == nil || !hasKey(s) {
		return signalGroup(leader, s)
	}
	var sent error
	err := control(term, func(master int) {
		if dropsTyped(term, s) {
			dropTyped(master)
		}
		sent = unix.IoctlSetInt(master, unix.TIOCSIG, int(s))
	})
	if err != nil || errors.Is(sent, unix.ENOTTY) || errors.Is(sent, unix.EINVAL) {
		// Or closed: the process has left it and lives on, and nobody types there any more.
		return signalGroup(leader, s)
	}
	return sent
}

// hasKey reports whether terminals have a key for the signal.
func hasKey(s syscall.Signal) bool {
	return s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGTSTP
}

// dropsTyped reports whether the signal drops what was typed before it and not read: the
// terminal may be set up to keep it.
func dropsTyped(term *os.File, s syscall.Signal) bool {
	set := setupOf(term)
	return hasKey(s) && set != nil && set.Lflag&unix.NOFLSH == 0
}

// signalOfKey is the signal that the terminal makes of the key as it is set up now; 0 where
// it makes none, as for a program that takes every key itself.
func signalOfKey(term *os.File, key byte) syscall.Signal {
	set := setupOf(term)
	if set == nil || set.Lflag&unix.ISIG == 0 || key == 0 { // 0 is also a key that is off
		return 0
	}
	switch key {
	case set.Cc[unix.VINTR]:
		return unix.SIGINT
	case set.Cc[unix.VQUIT]:
		return unix.SIGQUIT
	case set.Cc[unix.VSUSP]:
		return unix.SIGTSTP
	}
	return 0
}

// setupOf is how the terminal is set up, nil where it is closed.
func setupOf(term *os.File) *unix.Termios {
	var set *unix.Termios
	var failed error
	err := control(term, func(master int) { set, failed = unix.IoctlGetTermios(master, getTermios) })
	if err != nil || failed != nil {
		return nil
	}
	return set
}

// control calls work with the terminal's number, and fails where it is closed.
func control(term *os.File, work func(master int)) error {
	c, err := term.SyscallConn()
	if err != nil {
		return err
	}
	return c.Control(func(fd uintptr) { work(int(fd)) })
}
