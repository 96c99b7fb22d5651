//go:build !linux

package endpoint

import (
	"context"
	"errors"
	"net"
)

// Peers decides who may connect. Where commands are not confined there is
// nothing that a command could gain at its worker's socket, and the directory
// keeps other users out.
type Peers struct{}

// NewPeers has nothing to note on this system.
func NewPeers(name string) (*Peers, error) { return &Peers{}, nil }

// Check lets everybody in.
func (*Peers) Check(*net.UnixConn) error { return nil }

// Wake does nothing: who listens is unknown on this system.
func Wake(*net.UnixConn) error { return nil }

// CheckServer trusts the directory that the socket is in.
func CheckServer(*net.UnixConn) error { return nil }

// ServerPID is unknown on this system.
func ServerPID(context.Context, string) (int, error) { return 0, errors.ErrUnsupported }
