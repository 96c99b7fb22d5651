//go:build !linux

package handover

import (
	"context"
	"io"
	"net"
	"time"
)

// Give does nothing on this system.
func Give(context.Context, *net.UnixConn, io.Reader, io.Writer, time.Duration) (first []byte, taken bool, err error) {
	return nil, false, nil
}

// Take does nothing on this system.
func Take(context.Context, *net.UnixConn) (io.ReadWriteCloser, error) { return nil, nil }
