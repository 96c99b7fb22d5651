//go:build !windows

package connection

import (
	"context"
	"net"
)

// dialAgent connects to an agent's socket.
func dialAgent(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// defaultAgent is where an agent listens when nothing says so.
const defaultAgent = ""
