//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unsafe"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ours makes a file of our end of a pipe or terminal, polled so that a read or
// write of it can be given up.
func ours(fd int, name string) (*os.File, error) {
	if err := unblock(fd); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

// unblock makes our end of a pipe or terminal one that does not block. It has no
// other flag that this could take away.
func unblock(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, unix.O_NONBLOCK)
	return err
}

// polled is another file of f's pipe, polled as ours are.
func polled(f *os.File) (*os.File, error) {
	c, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	var failed error
	err = c.Control(func(old uintptr) { fd, failed = unix.FcntlInt(old, unix.F_DUPFD_CLOEXEC, 3) })
	if err = errors.Join(err, failed); err != nil {
		return nil, err
	}
	return ours(fd, f.Name())
}

// openTerminal makes a terminal of the size. The slave is for the child, in
// blocking mode.
func openTerminal(size tool.TTY) (master *os.File, slave int, err error) {
	m, s, err := pty.Open()
	if err != nil {
		return nil, -1, tool.Errorf(tool.Unsupported, "open a terminal: %w", err).
			WithHint("start the process without tty, or mount /dev/pts in the environment")
	}
	defer m.Close()
	defer s.Close()
	if err := pty.Setsize(m, &pty.Winsize{Cols: size.Cols, Rows: size.Rows}); err != nil {
		return nil, -1, fmt.Errorf("set the size of a terminal: %w", err)
	}
	// The files of the library block a thread each; duplicates can be polled.
	slave, err = unix.FcntlInt(s.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, -1, fmt.Errorf("duplicate a terminal: %w", err)
	}
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, -1, errors.Join(fmt.Errorf("duplicate a terminal: %w", err), unix.Close(slave))
	}
	if master, err = ours(fd, "terminal"); err != nil {
		return nil, -1, errors.Join(err, unix.Close(slave))
	}
	return master, slave, nil
}

// resizeTerminal sets the size; the kernel tells the foreground group.
func resizeTerminal(master *os.File, size tool.TTY) error {
	c, err := master.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = c.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: size.Cols, Row: size.Rows})
	})
	return errors.Join(err, failed)
}

// blockUntilEnd returns when the child has ended, and leaves it to be reaped.
// It holds a thread meanwhile.
func blockUntilEnd(pid int) error {
	const byPID = 1     // P_PID
	var info [16]uint64 // a siginfo_t, which nobody looks at
	for {
		_, _, errno := syscall.Syscall6(unix.SYS_WAITID, byPID, uintptr(pid),
			uintptr(unsafe.Pointer(&info)), unix.WEXITED|unix.WNOWAIT, 0, 0)
		if errno == 0 {
			return nil
		}
		if errno != unix.EINTR {
			return errno
		}
	}
}

// reap takes the exit status of a child that has ended.
func reap(pid int) (exitCode int, signal string, err error) {
	var status unix.WaitStatus
	for {
		_, err = unix.Wait4(pid, &status, 0, nil)
		if err != unix.EINTR {
			break
		}
	}
	switch {
	case err != nil:
		return -1, "", err
	case status.Signaled():
		return -1, signalName(status.Signal()), nil
	default:
		return status.ExitStatus(), "", nil
	}
}

func signalName(s syscall.Signal) string {
	if name := unix.SignalName(s); name != "" {
		return name
	}
	return fmt.Sprintf("SIG%d", int(s))
}

// signalNumber is the signal of the name, with or without SIG.
func signalNumber(name string) (syscall.Signal, bool) {
	name = strings.ToUpper(name)
	if !strings.HasPrefix(name, "SIG") {
		name = "SIG" + name
	}
	n := unix.SignalNum(name)
	return n, n != 0
}

// signalGroup signals a process group whose leader is known to be there.
func signalGroup(leader int, s syscall.Signal) error { return unix.Kill(-leader, s) }

// taken reports whether a process has the number, also one that the system hides.
func taken(pid int) bool { return !errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

// mayEnd reports whether this program may end the process.
func mayEnd(pid int) bool { return unix.Kill(pid, 0) == nil }

// halting is the signal that halts whoever gets it.
const halting = unix.SIGSTOP

// resume wakes a halted process, so that it can take another signal.
func resume(p procInfo) { _ = signalExactly(p, unix.SIGCONT) } // a process that is not halted ignores it

// peek reports whether a pipe or terminal has bytes, and whether it has ended.
func peek(fd int) (bytes, ended bool) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, 0); err != unix.EINTR {
			return fds[0].Revents&unix.POLLIN != 0, fds[0].Revents&unix.POLLHUP != 0
		}
	}
}
