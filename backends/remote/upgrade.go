package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/caisson-dev/caisson/backends/wire"
)

// A meeting is a socket on which a worker can come over from the baseline stream. It
// lies in a directory that the environment sees and cannot write to, so that nothing
// there is untrusted input: nobody inside can put another socket, or a link, in its
// place. Commands inside can connect to it as the worker can. The worker is who proves
// to know the nonce, which was told to it alone, over the baseline stream.
type meeting struct {
	listener *net.UnixListener
	offer    wire.SocketOffer
}

// meet listens in dir. The socket is open to all, since the worker may be of another
// user than we are; on this machine the directory above dir is private.
func meet(dir string) (*meeting, error) {
	offer := wire.SocketOffer{Path: "h-" + rand.Text()[:12] + ".sock", Nonce: rand.Text()}
	path := filepath.Join(dir, offer.Path)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	if err := openToAll(path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &meeting{listener: l, offer: offer}, nil
}

// close ends the meeting and removes its socket.
func (m *meeting) close() error {
	// The directory may be gone, with the user's last login.
	if err := m.listener.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// await returns the connection of the worker, and ends the meeting. Whoever else comes,
// even first and to say nothing, keeps nobody waiting: who waits longest has to go where
// too many do, and after very many the meeting is given up.
func (m *meeting) await(ctx context.Context) (*net.UnixConn, error) {
	ctx, fail := context.WithCancelCause(ctx)
	came := make(chan *net.UnixConn)
	var guests sync.WaitGroup
	guests.Go(func() {
		var waiting []*net.UnixConn
		for range maxGuests {
			conn, err := m.listener.AcceptUnix()
			if err != nil {
				fail(err)
				return
			}
			if waiting = append(waiting, conn); len(waiting) > maxWaiting {
				_ = waiting[0].Close() // it is not known to be anybody's
				waiting = waiting[1:]
			}
			guests.Go(func() {
				if wire.CheckSocket(ctx, conn, m.offer.Nonce) == nil {
					select {
					case came <- conn:
						return
					case <-ctx.Done():
					}
				}
				_ = conn.Close()
			})
		}
		fail(fmt.Errorf("%d others came", maxGuests))
	})
	defer guests.Wait()
	defer fail(nil)
	select {
	case conn := <-came:
		if err := m.close(); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("the worker did not come: %w", context.Cause(ctx)), m.close())
	}
}

// meet prepares for a worker to come over, where both sides see a directory. That it
// cannot is no reason to fail: nil then, and the baseline stream stays.
func (e *Environment) meet(dir string) *meeting {
	if dir == "" {
		return nil
	}
	m, err := meet(dir)
	if err != nil {
		e.log.Debug("no shared socket; staying on the baseline stream", "error", err)
		return nil
	}
	return m
}

// upgrade moves to the shared socket, if the worker says that it has come. Whatever
// does not work there is only a pity: the baseline stream stays. It returns nil then.
func (e *Environment) upgrade(ctx context.Context, m *meeting, in wire.Initialized, data wire.Initialize) *connection {
	if m == nil || !in.SocketConnected || !slices.Contains(in.Capabilities, wire.CapSocket) {
		return nil
	}
	c, err := e.overSocket(ctx, m, data)
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

func (e *Environment) overSocket(ctx context.Context, m *meeting, data wire.Initialize) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, upgradeTimeout)
	defer cancel()
	conn, err := m.await(ctx)
	if err != nil {
		return nil, err
	}
	stream, err := wire.Blocking(conn)
	if err != nil {
		_ = conn.Close() // what it has to say is nothing beside err
		return nil, err
	}
	c, _, err := e.handshake(ctx, Stream{ReadWriteCloser: stream}, data)
	return c, err
}
