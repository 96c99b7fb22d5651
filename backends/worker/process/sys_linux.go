package process

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newPipe makes a pipe whose ends no child inherits.
func newPipe() (r, w int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return -1, -1, err
	}
	return fds[0], fds[1], nil
}

// widen lets a pipe hold as much as users may make it hold, so that a process
// that writes fast is seldom stopped for a switch of threads. The limit of all
// a user's pipes may refuse it, and the pipe works as it is: then it reports false.
func widen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, maxPiece)
	return err == nil
}

// newSession are the attributes of a child that leads a session of its own,
// with a terminal if its stdin is one, and dies with this program: the thread
// that forks it ends no sooner. pidfd gets a descriptor of the child, or
// becomes -1 on kernels without.
func newSession(terminal bool, pidfd *int) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Setctty: terminal, Pdeathsig: syscall.SIGKILL, PidFD: pidfd}
}

// preferToEnd has the kernel end a command that was just started, and what that will
// start, before all others when memory is short: by size alone it ends this program,
// and with it all that it runs, where a container holds many that are smaller. What
// the command starts before this was said is chosen by its size.
func preferToEnd(pid int) {
	// Where it cannot be said, as of another user's program, its size decides too.
	_ = os.WriteFile(filepath.Join("/proc", strconv.Itoa(pid), "oom_score_adj"), []byte(oomScore), 0)
}

// awaitEnd returns when the child has ended, and leaves it to be reaped. With
// a pidfd, which it closes, no thread is held meanwhile.
func awaitEnd(pid, pidfd int) error {
	if pidfd < 0 {
		return blockUntilEnd(pid)
	}
	f, err := ours(pidfd, "process")
	if err != nil {
		return blockUntilEnd(pid)
	}
	defer f.Close()
	c, err := f.SyscallConn()
	if err != nil {
		return blockUntilEnd(pid)
	}
	var failed error
	err = c.Read(func(fd uintptr) (ended bool) {
		ended, failed = hasEnded(int(fd))
		return !errors.Is(failed, unix.EINTR) && (failed != nil || ended)
	})
	if err != nil || failed != nil {
		return blockUntilEnd(pid) // an older kernel: such descriptors cannot be waited for
	}
	return nil
}

// hasEnded reports whether the child of a pidfd can be reaped, and leaves it to be.
func hasEnded(pidfd int) (bool, error) {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PIDFD, pidfd, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0, err
}

// SealDescriptors keeps what this program itself was given, beside 0, 1 and 2,
// from its children. What the program opens is closed on exec anyway.
func SealDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil || !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return err
	}
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return err
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(filepath.Base(name)); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// beReaper makes this program the parent of its orphaned descendants.
func beReaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// nextZombie is the pid of a child that has ended, 0 when there is none, and
// whether there is no child at all.
func nextZombie() (pid int, childless bool) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || info.Signo == 0 {
			return 0, err == unix.ECHILD
		}
		// A siginfo_t for SIGCHLD: three numbers, padding to a pointer, the pid.
		return int((*struct {
			_   [3]int32
			_   [unsafe.Sizeof(uintptr(0)) - 4]byte
			pid int32
		})(unsafe.Pointer(&info)).pid), false
	}
}

// signalExactly signals p and nobody who has its pid meanwhile.
func signalExactly(p procInfo, s syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		fd = -1 // an older kernel or a filter: a moment's race remains
	} else if err != nil {
		return err
	} else {
		defer unix.Close(fd)
	}
	if start, ok := startTime(p.pid); !ok || start != p.start {
		return unix.ESRCH
	}
	if fd < 0 {
		return unix.Kill(p.pid, s)
	}
	err = unix.PidfdSendSignal(fd, s, nil, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return unix.Kill(p.pid, s)
	}
	return err
}

// marksKnown says that the mark of a process can be read.
const marksKnown = true
