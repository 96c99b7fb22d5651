//go:build !linux

package remote

import (
	"context"
	"errors"
	"net"
)

// dialShared fails: where containers live in a virtual machine a socket does not
// cross its border, and only Linux can open one without a race.
func dialShared(context.Context, string, string) (net.Conn, error) {
	return nil, errors.ErrUnsupported
}
