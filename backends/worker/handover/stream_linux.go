package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// stream is what was handed over. Its reads and writes each block a thread in poll(2),
// past the runtime's poller, for the reasons of wire.Blocking. They wait for the socket
// too, so that its end ends them, whichever side it comes from.
type stream struct {
	in, out end
	close   sync.Once
	direct  bool // the socket is read out; only Read uses it

	// mu is held for reading while the descriptors are used.
	mu     sync.RWMutex
	socket int // -1 before it is there
	closed bool
}

// adopt makes a stream of two descriptors, which are the stream's then, or closed.
func adopt(fds []int) (*stream, bool) {
	if !suits(fds[0], unix.O_RDONLY) || !suits(fds[1], unix.O_WRONLY) {
		closeAll(fds)
		return nil, false
	}
	in, err := own(fds[0], unix.O_RDONLY)
	if err != nil { // no /proc, or another user's pipe
		closeAll(fds[1:])
		return nil, false
	}
	out, err := own(fds[1], unix.O_WRONLY)
	if err != nil {
		closeAll([]int{in.fd})
		return nil, false
	}
	return &stream{in: in, out: out, socket: -1}, true
}

// acknowledge tells the giver that the descriptors are taken. The stream has a
// descriptor of its own of the connection then.
func (s *stream) acknowledge(conn *net.UnixConn) error {
	if _, err := conn.Write([]byte{acknowledgement}); err != nil {
		return err
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { s.socket, failed = unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 0) })
	return errors.Join(err, failed)
}

// errGone is the end of the socket.
var errGone = errors.New("attach has ended")

// BlocksThreads is what wire.Blocks asks for.
func (s *stream) BlocksThreads() bool { return true }

// Read reads what was sent on the socket, and then the input.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.read(p)
	if !errors.Is(err, errGone) {
		return n, err
	}
	// At once, not when all that was asked for has ended: an engine waits for it.
	if err := s.Close(); err != nil {
		return 0, err
	}
	return 0, io.EOF
}

func (s *stream) read(p []byte) (int, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for {
		if s.closed {
			return 0, net.ErrClosed
		}
		from := s.in
		if !s.direct {
			from = end{fd: s.socket}
		}
		if err := s.wait(from.fd, unix.POLLIN); err != nil {
			return 0, err
		}
		n, err := from.read(p)
		switch {
		case again(err):
		case err == nil && n == 0 && !s.direct:
			s.direct = true
		case err == nil && n == 0 && len(p) > 0:
			return 0, io.EOF
		case err != nil && !s.direct:
			return 0, errGone
		default:
			return max(n, 0), os.NewSyscallError("read", err)
		}
	}
}

// Write writes to the output.
func (s *stream) Write(p []byte) (written int, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for written < len(p) {
		if s.closed {
			return written, net.ErrClosed
		}
		n, err := s.out.write(p[written:])
		written += max(n, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			if err := s.wait(s.out.fd, unix.POLLOUT); err != nil {
				return written, err
			}
		case err != nil && !again(err):
			return written, os.NewSyscallError("write", err)
		}
	}
	return written, nil
}

func again(err error) bool { return errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) }

// wait waits for fd, and fails with errGone when both directions of the socket have
// ended: that of attach alone has when the descriptors were handed over.
func (s *stream) wait(fd int, events int16) error {
	fds := [2]unix.PollFd{{Fd: int32(fd), Events: events}, {Fd: int32(s.socket)}}
	for {
		_, err := unix.Poll(fds[:], -1)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("poll", err)
		case fds[1].Revents != 0:
			return errGone
		default:
			return nil
		}
	}
}

// Close ends what is blocked in a read or write.
func (s *stream) Close() (err error) {
	s.close.Do(func() {
		if s.socket >= 0 {
			// One that attach has closed is not connected any more.
			_ = unix.Shutdown(s.socket, unix.SHUT_RDWR)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.closed = true
		err = errors.Join(unix.Close(s.in.fd), unix.Close(s.out.fd))
		if s.socket >= 0 {
			err = errors.Join(err, unix.Close(s.socket))
		}
	})
	return err
}
