package connection

import (
	"net"

	"golang.org/x/sys/unix"
)

// unsent is how many bytes written to a TCP connection the far end's system has not
// taken yet; 0 where that is not known.
func unsent(c net.Conn) int {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	queued := 0
	// It fails on a connection that has ended, of which others will tell.
	_ = raw.Control(func(fd uintptr) { queued, _ = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
	return queued
}
