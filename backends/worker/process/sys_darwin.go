package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// newPipe makes a pipe whose ends no child inherits.
func newPipe() (r, w int, err error) {
	var fds [2]int
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if err := unix.Pipe(fds[:]); err != nil {
		return -1, -1, err
	}
	unix.CloseOnExec(fds[0])
	unix.CloseOnExec(fds[1])
	return fds[0], fds[1], nil
}

// newSession are the attributes of a child that leads a session of its own,
// with a terminal if its stdin is one.
func newSession(terminal bool, pidfd *int) *syscall.SysProcAttr {
	*pidfd = -1
	return &syscall.SysProcAttr{Setsid: true, Setctty: terminal}
}

// preferToEnd has nothing to do: what this system ends when memory is short it decides
// itself.
func preferToEnd(int) {}

func awaitEnd(pid, _ int) error { return blockUntilEnd(pid) }

// SealDescriptors has nothing to do: this system's launcher passes none on.
func SealDescriptors() error { return nil }

func beReaper() error { return nil } // the system has no such thing

func nextZombie() (pid int, childless bool) { return 0, true }

// signalExactly signals p unless another process has its pid now.
func signalExactly(p procInfo, s syscall.Signal) error {
	if start, ok := startTime(p.pid); !ok || start != p.start {
		return unix.ESRCH
	}
	return unix.Kill(p.pid, s)
}

// marksKnown says that the mark of a process can be read.
const marksKnown = false
