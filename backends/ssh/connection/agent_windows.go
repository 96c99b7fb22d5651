package connection

import (
	"context"
	"net"

	"github.com/Microsoft/go-winio"
)

// dialAgent connects to an agent's named pipe.
func dialAgent(ctx context.Context, pipe string) (net.Conn, error) {
	return winio.DialPipeContext(ctx, pipe)
}

// defaultAgent is where an agent listens when nothing says so.
const defaultAgent = `\\.\pipe\openssh-ssh-agent`
