//go:build unix

package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// blocking is a Unix socket whose reads and writes block a thread.
type blocking struct{ file *os.File }

// Blocking takes over a Unix socket for reads that each block a thread, past the
// runtime's poller. The poller wakes for every read at the other end too, since there
// is room to write then, and a process whose threads all sleep in it has its monitor
// woken with every message, which then looks for work every 20 µs: together they cost
// more than a small call. It is for a few long-lived connections.
//
// After an error conn is as it was, but for what is left of it: the caller closes it.
func Blocking(conn *net.UnixConn) (io.ReadWriteCloser, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("take over a socket: %w", err)
	}
	fd := -1
	var dup error
	if err := raw.Control(func(own uintptr) {
		if fd, dup = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0); dup == nil {
			dup = unix.SetNonblock(fd, false)
		}
	}); err != nil {
		return nil, fmt.Errorf("take over a socket: %w", err)
	}
	if dup != nil {
		if fd >= 0 {
			dup = errors.Join(dup, unix.Close(fd))
		}
		return nil, fmt.Errorf("take over a socket: %w", dup)
	}
	file := os.NewFile(uintptr(fd), "socket") // blocking as it is, it is not polled
	if err := conn.Close(); err != nil {
		return nil, errors.Join(fmt.Errorf("take over a socket: %w", err), file.Close())
	}
	return &blocking{file}, nil
}

// BlocksThreads is what [Blocks] asks for.
func (b *blocking) BlocksThreads() bool { return true }

func (b *blocking) Read(p []byte) (int, error) { return b.file.Read(p) }

func (b *blocking) Write(p []byte) (int, error) { return b.file.Write(p) }

// CloseWrite has the other end read the end, and leaves this one open for reading.
func (b *blocking) CloseWrite() error { return b.shutdown(unix.SHUT_WR) }

// Close ends what is blocked in a read or write.
func (b *blocking) Close() error {
	// One that the other end has closed is not connected any more.
	_ = b.shutdown(unix.SHUT_RDWR)
	return b.file.Close()
}

func (b *blocking) shutdown(how int) error {
	raw, err := b.file.SyscallConn()
	if err != nil {
		return err
	}
	return errors.Join(raw.Control(func(fd uintptr) { err = unix.Shutdown(int(fd), how) }), err)
}
