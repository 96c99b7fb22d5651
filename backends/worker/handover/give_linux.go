package handover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Give offers in and out to the worker at the other end of conn. When it takes them
// Give returns at the end of the connection, or with [ErrLingers] when that does not
// come for the time of drain after the end of the input. Else taken is false, and what
// is left is to write first, which the worker said, to out and to relay: at once when
// one of the two is nothing that can be handed over.
func Give(ctx context.Context, conn *net.UnixConn, in io.Reader, out io.Writer, drain time.Duration) (first []byte, taken bool, err error) {
	inFile, ok1 := in.(*os.File)
	outFile, ok2 := out.(*os.File)
	if !ok1 || !ok2 {
		return nil, false, nil
	}
	stop := context.AfterFunc(ctx, func() {
		// Whatever waits for the connection goes on then.
		_ = conn.SetDeadline(time.Unix(1, 0))
		_ = conn.CloseRead()
	})
	g := giver{conn: conn, input: inFile, drain: drain}
	err = withFDs(func(fds []int) error {
		if !suits(fds[1], unix.O_RDONLY) || !suits(fds[2], unix.O_WRONLY) {
			return nil
		}
		g.socket, g.in = fds[0], fds[1]
		g.rights = unix.UnixRights(fds[1], fds[2])
		return g.run()
	}, conn, inFile, outFile)
	if !stop() {
		return nil, g.taken, ctx.Err()
	}
	return g.first, g.taken, err
}

// withFDs calls f with the descriptors of these files, which stay open meanwhile.
func withFDs(f func(fds []int) error, files ...syscall.Conn) error {
	return withMore(f, nil, files)
}

func withMore(f func([]int) error, fds []int, files []syscall.Conn) error {
	if len(files) == 0 {
		return f(fds)
	}
	raw, err := files[0].SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = withMore(f, append(fds, int(fd)), files[1:]) })
	return cmp.Or(failed, err)
}

// giver is attach's end. It runs on one thread, and waits in poll(2), which neither
// takes anything from the input nor changes the descriptors that it shares with
// whoever started it.
type giver struct {
	conn       *net.UnixConn
	input      *os.File
	socket, in int // descriptors of the connection and of the input
	rights     []byte
	drain      time.Duration

	taken bool
	first []byte    // of a worker that does not take them
	over  time.Time // when the input has ended: until when to wait for the worker
}

func (g *giver) run() error {
	piece := make([]byte, pieceSize)
	for {
		answered, readable, err := g.wait()
		switch {
		case err != nil:
			return err
		case answered:
			n, err := g.conn.Read(piece)
			switch {
			case n == 0 && !errors.Is(err, io.EOF):
				return err
			case n == 0 || !g.taken && piece[0] != acknowledgement:
				g.first = piece[:n]
				return nil
			case !g.taken:
				g.taken = true
				// Of a worker that has ended since the next read tells.
				_ = g.conn.CloseWrite()
			}
		case readable && g.taken:
			g.ended()
		case readable:
			if err := g.relay(piece); err != nil {
				return err
			}
			if g.rights != nil && !g.over.IsZero() {
				return nil // there is nothing to hand over
			}
		}
	}
}

func (g *giver) ended() { g.over = time.Now().Add(g.drain) }

// relay passes on what the input has, at first with the descriptors.
func (g *giver) relay(piece []byte) error {
	n, err := unix.Read(g.in, piece)
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return nil
	case err != nil:
		return &fs.PathError{Op: "read", Path: g.input.Name(), Err: err}
	case n == 0:
		g.ended()
		_ = g.conn.CloseWrite() // as above
		return nil
	}
	rest := piece[:n]
	if g.rights != nil {
		n, _, err := g.conn.WriteMsgUnix(rest, g.rights, nil)
		if err != nil {
			return err
		}
		g.rights, rest = nil, rest[n:]
	}
	_, err = g.conn.Write(rest)
	return err
}

// wait waits for the worker or the input: once that is handed over only for its end,
// which is no end of waiting in itself.
func (g *giver) wait() (answered, readable bool, err error) {
	for {
		fds := []unix.PollFd{{Fd: int32(g.socket), Events: unix.POLLIN}, {Fd: int32(g.in), Events: unix.POLLIN}}
		timeout := -1
		if g.taken {
			fds[1].Events = unix.POLLRDHUP
		}
		if !g.over.IsZero() {
			fds = fds[:1]
			timeout = int(max(0, time.Until(g.over).Milliseconds()))
		}
		n, err := unix.Poll(fds, timeout)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return false, false, fmt.Errorf("wait for the worker: %w", err)
		case n == 0:
			return false, false, ErrLingers
		default:
			return fds[0].Revents != 0, len(fds) > 1 && fds[1].Revents != 0, nil
		}
	}
}
