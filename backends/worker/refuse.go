package worker

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// errRefused is what a peer is told that may not connect, and why, unless it may be a
// command: that one is to learn nothing from what it is taken for. What says nothing
// against the peer may be over at its next try.
func errRefused(why error) error {
	const refused = "the worker refused the connection"
	e := tool.Errorf(tool.Denied, "%s: %w", refused, why)
	switch {
	case errors.Is(why, endpoint.ErrCommand):
		e = tool.Errorf(tool.Denied, refused)
	case errors.Is(why, endpoint.ErrForeign):
	default:
		e = tool.Errorf(tool.BackendUnavailable, "%s, since it could not see whose it is: %w", refused, why)
		e.Retryable = true
		return e.WithHint("try again; if it happens again, look at the worker.log, beside the session's records in the environment")
	}
	return e.WithHint("what a command of a session has started may not connect to a worker; " +
		"what this one has seen is in its worker.log, beside the session's records in the environment")
}

// errFull is within what a peer is told that came too late to be looked at.
var errFull = fmt.Errorf("it has %d, which is the most", maxConnections)

func errTooMany() error {
	e := tool.Errorf(tool.Overloaded, "the worker refused the connection: %w", errFull)
	e.Retryable = true
	return e.WithHint("try again, when one of them has ended")
}

// refuse tells a peer that its connection is refused, in answer to its first request,
// and hangs up.
func (s *server) refuse(conn *net.UnixConn, why error) {
	select {
	case s.refusals <- struct{}{}:
	default:
		s.hangUp(conn)
		return
	}
	s.connections.Go(func() {
		defer func() { <-s.refusals }()
		defer context.AfterFunc(s.life, func() { s.hangUp(conn) })()
		err := conn.SetDeadline(time.Now().Add(refusalTimeout))
		if err == nil {
			err = wire.Refuse(conn, why, s.heard(conn, why))
		}
		if err != nil {
			s.log.Debug("a refused connection was not told so", "error", err)
		}
		s.hangUp(conn)
	})
}

// heard is how much is read, in bytes, of a peer that is refused, to answer it. Of one that
// may be a command that is little: what is read is held in memory, of which a container may
// have hardly more than its worker needs.
func (s *server) heard(conn *net.UnixConn, why error) int {
	switch {
	case errors.Is(why, endpoint.ErrForeign):
		return wire.MaxRefused
	case errors.Is(why, errFull) && s.peers.Check(conn) == nil:
		// The host, or as good as it: nobody has looked so far.
		return wire.MaxRefused
	}
	return maxUnknown
}
