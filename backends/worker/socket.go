package worker

import (
	"net"
	"path/filepath"

	"github.com/caisson-dev/caisson/backends/wire"
)

// goOver connects to where a host listens for this worker, and serves it there too. The
// baseline stream stays until the host leaves it. It reports whether it has connected:
// that it cannot is no reason to fail.
func (s *server) goOver(offer wire.SocketOffer) bool {
	if s.o.ShareDir == "" || s.peers == nil {
		return false
	}
	select {
	case s.slots <- struct{}{}:
	default:
		s.log.Info("no shared socket: too many connections are open", "limit", maxConnections)
		return false
	}
	path := filepath.Join(s.o.ShareDir, filepath.Base(offer.Path))
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		<-s.slots
		s.log.Info("no shared socket", "reason", err)
		return false
	}
	if err := s.peers.Check(conn); err != nil {
		<-s.slots
		s.log.Warn("left the shared socket", "reason", err)
		s.hangUp(conn)
		return false
	}
	s.connections.Go(func() {
		defer func() { <-s.slots }()
		s.meet(conn, offer.Nonce)
	})
	return true
}

// meet serves a host that lets the worker prove what it is. The host proves itself by
// listening where nobody else can, and then by the token.
func (s *server) meet(conn *net.UnixConn, nonce string) {
	late := s.hangUpLate(conn)
	err := wire.AnswerSocket(s.life, conn, nonce)
	late.Stop()
	if err != nil {
		s.log.Info("the host did not take the shared socket", "reason", err)
		s.hangUp(conn)
		return
	}
	s.serveConn(conn)
}
