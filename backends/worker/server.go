package worker

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/handover"
)

// server is one worker: its session, once there is one, and its connections.
type server struct {
	o     Options
	log   *slog.Logger
	peers *endpoint.Peers // nil on stdio
	token *wire.Token
	// life is the worker's; end ends it, for the first reason that it is given.
	life context.Context
	end  context.CancelCauseFunc

	// connections holds accept loops and connections.
	connections sync.WaitGroup
	// slots bounds connections, refusals those that are told that they get none.
	slots, refusals chan struct{}
	// binding is held, by having put an element in, while a session is opened
	// or cleaned up.
	binding chan struct{}

	mu        sync.Mutex
	session   *session             // nil before the first initialize succeeded
	live      map[*connection]bool // the initialized ones
	listeners []*net.UnixListener
	idle      *time.Timer
	ending    bool // nobody may initialize any more
	cleaned   bool
	cleanErr  error
}

func newServer(ctx context.Context, o Options) *server {
	life, end := context.WithCancelCause(ctx)
	return &server{
		o:        o,
		log:      o.Log,
		life:     life,
		end:      end,
		token:    wire.NewToken(o.Listen != ""),
		slots:    make(chan struct{}, maxConnections),
		refusals: make(chan struct{}, maxRefusals),
		binding:  make(chan struct{}, 1),
		live:     map[*connection]bool{},
	}
}

// bound is the session, nil before there is one.
func (s *server) bound() *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session
}

// listen accepts connections until stopListening.
func (s *server) listen(l *net.UnixListener) {
	s.mu.Lock()
	s.listeners = append(s.listeners, l)
	s.mu.Unlock()
	s.connections.Go(func() { s.accept(l) })
}

func (s *server) accept(l *net.UnixListener) {
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			s.log.Error("accept", "error", err)
			select {
			case <-s.life.Done():
				return
			case <-time.After(acceptPause):
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
		default:
			s.log.Warn("refused a connection: too many are open", "limit", maxConnections)
			s.refuse(conn, errTooMany())
			continue
		}
		s.connections.Go(func() {
			defer func() { <-s.slots }()
			s.admit(conn)
		})
	}
}

// admit serves a connection whose peer may have one: what an attach hands over there,
// where it may, or the connection itself.
func (s *server) admit(conn *net.UnixConn) {
	if err := s.peers.Check(conn); err != nil {
		s.log.Warn("refused a connection", "reason", err)
		s.refuse(conn, errRefused(err))
		return
	}
	late := s.hangUpLate(conn)
	stream, err := handover.Take(s.life, conn)
	late.Stop()
	switch {
	case err != nil:
		s.broken(conn, err)
	case stream != nil:
		s.serveUntilLate(stream)
	default:
		s.serveConn(conn)
	}
}

// serveConn serves a socket whose peer may have a connection.
func (s *server) serveConn(conn *net.UnixConn) {
	// A piece of a body fits in at once, so that nobody is woken for parts of one. Without it
	// everything works as well.
	_ = conn.SetWriteBuffer(sendBuffer)
	stream, err := wire.Blocking(conn)
	if err != nil {
		s.broken(conn, err)
		return
	}
	s.serveUntilLate(stream)
}

// serveUntilLate serves a stream, and hangs up when it does not initialize in time.
func (s *server) serveUntilLate(stream io.ReadWriteCloser) {
	late := s.hangUpLate(stream)
	defer late.Stop()
	if err := s.serve(stream, late); err != nil {
		s.log.Warn("connection ended", "error", err)
	}
}

// broken hangs up on a connection that came to nothing.
func (s *server) broken(conn io.Closer, err error) {
	if s.life.Err() == nil { // else we ended it
		s.log.Warn("connection ended", "error", err)
	}
	s.hangUp(conn)
}

// hangUpLate hangs up, unless it is stopped before, on one that takes its time.
func (s *server) hangUpLate(conn io.Closer) *time.Timer {
	return time.AfterFunc(handshakeTimeout, func() {
		s.log.Warn("ended a connection that did not initialize", "timeout", handshakeTimeout)
		s.hangUp(conn)
	})
}

func (s *server) hangUp(conn io.Closer) {
	if err := conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, os.ErrClosed) {
		s.log.Warn("close a connection", "error", err)
	}
}

// serve serves one connection to its end. The timer late, unless nil, is
// stopped once it is initialized.
func (s *server) serve(rw io.ReadWriteCloser, late *time.Timer) error {
	c := &connection{server: s, late: late}
	c.wire = wire.NewServer(rw, c, wire.ServerOptions{Token: s.token, Log: s.log})
	defer s.leave(c)
	err := c.wire.Serve(s.life)
	if s.life.Err() != nil {
		return nil // we ended it
	}
	return err
}

// join makes c one of the initialized connections, which keep the worker alive.
func (s *server) join(c *connection) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return errEnding()
	}
	s.live[c] = true
	if s.idle != nil {
		s.idle.Stop()
	}
	return nil
}

func errEnding() error {
	return &tool.Error{Kind: tool.BackendUnavailable, Message: "the worker is ending", Retryable: true}
}

func (s *server) leave(c *connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.live[c] {
		return
	}
	delete(s.live, c)
	if c.asked {
		s.end(nil) // it has its answer
	}
	if len(s.live) == 0 && s.idle != nil {
		s.idle.Reset(s.o.Lifetime)
	}
}

// startIdling begins the worker's first lifetime.
func (s *server) startIdling() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle = time.AfterFunc(s.o.Lifetime, s.idleOver)
	if len(s.live) > 0 {
		s.idle.Stop()
	}
}

func (s *server) idleOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 {
		return // it came in the last moment
	}
	s.ending = true
	s.end(ErrIdle)
}

// stopListening lets nobody in any more. Whoever comes later starts another
// worker, which waits for the end of this one.
func (s *server) stopListening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
	if s.idle != nil {
		s.idle.Stop()
	}
	for _, l := range s.listeners {
		// Closing a listener removes its socket.
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("close a socket", "error", err)
		}
	}
	s.listeners = nil
}

// stayReachable listens anew whenever the socket is gone from its place, until the end
// of the life: a user's runtime directory is removed with the last login, and may be
// there again with the next one, while processes go on.
func (s *server) stayReachable(l *net.UnixListener) {
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	told := false
	for {
		select {
		case <-s.life.Done():
			return
		case <-look.C:
		}
		again, err := s.relisten(l)
		switch {
		case err == nil:
			l, told = again, false
		case !told:
			s.log.Warn("nobody can connect: the socket was removed, and there is no place for another one yet", "error", err)
			told = true
		}
	}
}

// relisten is l or, when its socket is gone, what listens in its place.
func (s *server) relisten(l *net.UnixListener) (*net.UnixListener, error) {
	if _, err := os.Lstat(s.o.Listen); !errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return l, nil
	}
	again, err := endpoint.Listen(s.o.Listen)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // what stands there now is another one's
	s.hangUp(l)
	s.listeners = slices.DeleteFunc(s.listeners, func(other *net.UnixListener) bool { return other == l })
	s.listeners = append(s.listeners, again)
	s.connections.Go(func() { s.accept(again) })
	return again, nil
}

// emit sends an event to every host that is connected.
func (s *server) emit(e tool.ProcessEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.live {
		c.wire.Emit(e)
	}
}

// cleanUp ends the session, once: it stops its processes, lets go of its files,
// and removes the workspace when that is asked for and nothing failed before. With
// forget what is kept of the session goes then, too.
func (s *server) cleanUp(remove, forget bool) error {
	s.binding <- struct{}{}
	defer func() { <-s.binding }()
	s.mu.Lock()
	session := s.session
	done := s.cleaned
	s.mu.Unlock()
	if !done {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.ShutdownTimeout)
		defer cancel()
		err := session.close(ctx, remove)
		s.mu.Lock()
		s.cleaned, s.cleanErr = true, err
		s.mu.Unlock()
	}
	if forget && s.cleanErr == nil {
		s.cleanErr = session.forget()
	}
	return s.cleanErr
}
