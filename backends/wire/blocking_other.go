//go:build !unix

package wire

import (
	"io"
	"net"
)

// Blocking leaves the socket as it is on this system.
func Blocking(conn *net.UnixConn) (io.ReadWriteCloser, error) { return conn, nil }
