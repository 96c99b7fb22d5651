package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Take waits for the first bytes on conn and, when descriptors came with them that
// can be taken, returns the stream that they make; conn is the stream's then. Else it
// returns nil, and nothing was read. It fails when ctx ends; the caller closes conn.
// Whoever connected must have been let in before.
func Take(ctx context.Context, conn *net.UnixConn) (io.ReadWriteCloser, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Unix(1, 0)) })
	fds, err := peek(conn)
	if !stop() {
		closeAll(fds)
		return nil, context.Cause(ctx)
	}
	if err != nil || len(fds) == 0 {
		return nil, err
	}
	s, ok := adopt(fds)
	if !ok {
		return nil, nil
	}
	if err := s.acknowledge(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("take over an attach: %w", err), s.Close())
	}
	return s, conn.Close()
}

// peek returns copies of the two descriptors that come with the first bytes, or none.
// What is only looked at goes with its reading: to whoever does not take them the
// connection is as if nobody had looked.
func peek(conn *net.UnixConn) (fds []int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var first [1]byte
	control := make([]byte, unix.CmsgSpace(2*4)) // the kernel closes what is beyond
	var n, flags int
	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for {
			_, n, flags, _, failed = unix.Recvmsg(int(fd), first[:], control,
				unix.MSG_PEEK|unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
			if !errors.Is(failed, unix.EINTR) {
				return !errors.Is(failed, unix.EAGAIN)
			}
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, fmt.Errorf("wait for the first frame: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil {
		return nil, fmt.Errorf("descriptors that came: %w", err)
	}
	for _, m := range messages {
		if rights, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, rights...)
		}
	}
	if len(fds) != 2 || flags&unix.MSG_CTRUNC != 0 {
		closeAll(fds)
		return nil, nil
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // nothing was written to it
	}
}

// suits reports whether what fd refers to can be handed over for this mode. A
// terminal or a file can not: it does not end, or is not waited for.
func suits(fd, mode int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil || flags&unix.O_PATH != 0 {
		return false
	}
	if access := flags & unix.O_ACCMODE; access != mode && access != unix.O_RDWR {
		return false
	}
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil {
		return false
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFIFO:
		return true
	case unix.S_IFSOCK:
		kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
		return err == nil && kind == unix.SOCK_STREAM
	}
	return false
}

// end is one of the two streams that were handed over. It never blocks, and that is
// no property of what its giver holds: a pipe is opened anew, which makes it another
// description of the same pipe, and a socket is asked not to with each call.
type end struct {
	fd     int
	socket bool
}

// own makes an end of fd, which is closed or the end's.
func own(fd, mode int) (end, error) {
	if _, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err == nil {
		return end{fd: fd, socket: true}, nil
	}
	defer closeAll([]int{fd})
	anew, err := unix.Open("/proc/self/fd/"+strconv.Itoa(fd), mode|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return end{fd: anew}, err
}

func (e end) read(p []byte) (int, error) {
	if !e.socket {
		return unix.Read(e.fd, p)
	}
	n, _, err := unix.Recvfrom(e.fd, p, unix.MSG_DONTWAIT)
	return n, err
}

func (e end) write(p []byte) (int, error) {
	if !e.socket {
		return unix.Write(e.fd, p)
	}
	return unix.SendmsgN(e.fd, p, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}
