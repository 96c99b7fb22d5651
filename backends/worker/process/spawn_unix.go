//go:build linux || darwin

package process

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// childSignals are the signals that tell of a child's end.
func childSignals() []os.Signal { return []os.Signal{unix.SIGCHLD} }

// plumbing are the descriptors of one start. Nothing here outlives a failed
// one.
type plumbing struct {
	child  [3]int // what becomes the child's 0, 1 and 2
	theirs []int  // the same, each once: closed after the fork
	input  *os.File
	term   *os.File
	output []int // our ends, which do not block
}

// plumb opens what s asks for.
func plumb(s spec) (l plumbing, err error) {
	defer func() {
		if err != nil {
			l.closeTheirs()
			l.closeOurs()
		}
	}()
	if s.tty != nil {
		master, slave, err := openTerminal(*s.tty)
		if err != nil {
			return l, err
		}
		l.child = [3]int{slave, slave, slave}
		l.theirs, l.term, l.input = []int{slave}, master, master
		return l, nil
	}
	if l.child[0], err = l.stdin(s.input); err != nil {
		return l, err
	}
	for i := range s.streams {
		fd, err := l.stream()
		if err != nil {
			return l, err
		}
		l.child[1+i] = fd
		if len(s.streams) == 1 {
			l.child[2] = fd
		}
	}
	return l, nil
}

// stdin opens the child's standard input: a pipe, or the end of the file.
func (l *plumbing) stdin(pipe bool) (int, error) {
	if !pipe {
		fd, err := unix.Open(os.DevNull, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == nil {
			l.theirs = append(l.theirs, fd)
			return fd, nil
		}
		// An environment without /dev: a pipe that nobody writes to.
	}
	r, w, err := newPipe()
	if err != nil {
		return -1, err
	}
	l.theirs = append(l.theirs, r)
	if !pipe {
		return r, unix.Close(w)
	}
	l.input = os.NewFile(uintptr(w), "stdin")
	return r, nil
}

// stream opens a pipe that takes output.
func (l *plumbing) stream() (int, error) {
	r, w, err := newPipe()
	if err != nil {
		return -1, err
	}
	l.theirs = append(l.theirs, w)
	l.output = append(l.output, r)
	return w, unblock(r)
}

func (l *plumbing) closeTheirs() {
	for _, fd := range l.theirs {
		_ = unix.Close(fd) // nothing was written through it here
	}
	l.theirs = nil
}

func (l *plumbing) closeOurs() {
	for _, fd := range l.output {
		_ = unix.Close(fd)
	}
	for _, f := range []*os.File{l.input, l.term} {
		if f != nil {
			_ = f.Close() // the terminal stands here twice
		}
	}
}

// spawn forks and executes. After it the process runs, and the caller starts
// p.follow.
func (p *proc) spawn(s spec) (pidfd int, err error) {
	l, err := plumb(s)
	if err != nil {
		return -1, startError(s, err)
	}
	pidfd = -1
	attr := &syscall.ProcAttr{
		Dir: s.dir, Env: s.env,
		Files: []uintptr{uintptr(l.child[0]), uintptr(l.child[1]), uintptr(l.child[2])},
		Sys:   newSession(s.tty != nil, &pidfd),
	}
	pid, err := p.m.born.fork(func() (pid int, err error) {
		if !s.launcher.Do(func() { pid, err = syscall.ForkExec(s.path, s.argv, attr) }) {
			err = tool.Errorf(tool.EnvironmentLost, "the environment is shutting down: nothing new is started")
		}
		return pid, err
	})
	l.closeTheirs()
	if err != nil {
		l.closeOurs()
		return -1, startError(s, err)
	}
	if p.m.o.Contained {
		preferToEnd(pid)
	}
	p.mu.Lock()
	p.rec.PID, p.rec.PGID = pid, pid
	p.term, p.pipes, p.streams = l.term, l.output, s.streams
	if l.input != nil {
		p.stdin = newInput(l.input, l.term != nil)
	}
	p.mu.Unlock()
	return pidfd, nil
}

// startError says why s could not be started.
func startError(s spec, err error) error {
	var known *tool.Error
	if errors.As(err, &known) {
		return err
	}
	e := tool.Errorf(tool.Internal, "start %q: %w", s.path, err).WithPath(s.path)
	switch {
	case errors.Is(err, unix.E2BIG):
		e.Kind = tool.InvalidParams
		e.Message = fmt.Sprintf("start %q: the arguments and the environment are too large", s.path)
		e.Hint = "put what is large into a file or standard input, and name the file: one argument or variable has less than 128 KiB on Linux"
	case errors.Is(err, unix.EINVAL):
		e.Kind = tool.InvalidParams
		e.Message = fmt.Sprintf("start %q: an argument or variable holds a NUL byte", s.path)
	case errors.Is(err, unix.ENOENT):
		e.Kind = tool.Unsupported
		e.Message = fmt.Sprintf("start %q: the program is there, but not the interpreter or loader that it needs", s.path)
		e.Hint = "install what the first line of the script, or the program, names, or run the script by an interpreter that is there"
	case errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EACCES):
		e.Kind = tool.InvalidParams
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.EMFILE), errors.Is(err, unix.ENFILE):
		e.Kind, e.Retryable = tool.Overloaded, true
		e.Hint = "stop some processes: the environment is at a limit of processes, memory or descriptors"
	}
	if e.Kind == tool.InvalidParams {
		e.Path = s.member
	}
	return e
}
