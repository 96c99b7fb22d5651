package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/wire"
)

// upgrade moves to the socket that a worker offered in the directory that both
// sides share. Whatever does not work there is only a pity: the baseline stream
// stays. It returns nil then.
func (e *Environment) upgrade(ctx context.Context, dir string, in wire.Initialized, data wire.Initialize) *connection {
	if dir == "" || in.Socket == nil || !slices.Contains(in.Capabilities, wire.CapSocket) {
		return nil
	}
	c, err := e.overSocket(ctx, dir, *in.Socket, data)
	if err != nil {
		e.log.Debug("the shared socket is of no use; staying on the baseline stream", "error", err)
		return nil
	}
	if c.root != in.Root {
		e.log.Debug("the shared socket leads to another workspace; staying on the baseline stream")
		if err := c.Close(); err != nil {
			e.log.Debug("closing the shared socket", "error", err)
		}
		return nil
	}
	return c
}

func (e *Environment) overSocket(ctx context.Context, dir string, offer wire.SocketOffer, data wire.Initialize) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeTimeout)
	defer cancel()
	// What is in the directory was made by the environment, and commands there may
	// have changed it since.
	if name := offer.Path; !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || name == "." {
		return nil, fmt.Errorf("the offered name %.100q is not that of a file in the shared directory", name)
	}
	if offer.Nonce == "" {
		return nil, errors.New("the offer has no nonce")
	}
	conn, err := dialShared(ctx, dir, offer.Path)
	if err != nil {
		return nil, err
	}
	if err := wire.CheckSocket(ctx, conn, offer.Nonce); err != nil {
		_ = conn.Close() // what it has to say is nothing beside err
		return nil, err
	}
	stream := io.ReadWriteCloser(conn)
	if conn, ok := conn.(*net.UnixConn); ok {
		if stream, err = wire.Blocking(conn); err != nil {
			_ = conn.Close()
			return nil, err
		}
	}
	c, _, err := e.handshake(ctx, Stream{ReadWriteCloser: stream}, data)
	return c, err
}
