package connection

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Conn is a reference to a connection to a machine. Its methods may be called
// at once. A machine that lets no further session run on the shared connection
// gives this reference connections of its own without being asked.
type Conn struct {
	pool *Pool
	link *link

	mu     sync.Mutex
	closed bool
	extra  []*link
	open   map[*Stream]struct{}
}

func newConn(p *Pool, l *link) *Conn {
	return &Conn{pool: p, link: l, open: make(map[*Stream]struct{})}
}

// errNoCommands is a server's no to a command.
var errNoCommands = errors.New("the server does not start commands")

// errConnClosed is the error of a reference that was given back.
func errConnClosed() error {
	return &tool.Error{Kind: tool.Cancelled, Message: "the connection was closed", Err: errClosed}
}

// Exec starts a command through the account's shell. It has no terminal. The
// context bounds the start and nothing afterwards. command is one line for the
// remote shell: see [Quote]. Errors are *tool.Error.
func (c *Conn) Exec(ctx context.Context, command string) (*Stream, error) {
	s, err := c.start(ctx, func(s *ssh.Session) error {
		err := s.Start(command)
		if err != nil && requestRefused(err) {
			// The library's error quotes the command.
			return errNoCommands
		}
		return err
	})
	if err != nil {
		return nil, c.public(err)
	}
	return s, nil
}

// public is err as it leaves this room.
func (c *Conn) public(err error) error {
	var e *tool.Error
	if errors.As(err, &e) {
		return err
	}
	out := tool.Errorf(tool.BackendUnavailable, "%s: %w", c.link.route.last(), err)
	out.Retryable = !c.link.alive()
	if errors.Is(err, ErrSessionsExhausted) {
		return out.WithHint("raise MaxSessions in the machine's sshd_config")
	}
	return out.WithHint("see whether the account may run commands: ssh %s true", Quote(c.link.route.last().Name))
}

// SFTP starts the SFTP subsystem. A machine without one that works is
// [ErrNoSFTP]. The client must be closed; its calls end when the connection
// does.
func (c *Conn) SFTP(ctx context.Context) (*sftp.Client, error) {
	s, err := c.start(ctx, func(s *ssh.Session) error {
		err := s.RequestSubsystem("sftp")
		if err != nil && requestRefused(err) {
			return ErrNoSFTP
		}
		return err
	})
	if err != nil {
		return nil, c.public(err)
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	client, err := sftp.NewClientPipe(s, sftpInput{s}, sftp.UseConcurrentWrites(true))
	if !stop() && err == nil {
		client.Close()
		err = ctx.Err()
	}
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil:
		s.Close()
		return nil, contextError(ctx, "starting sftp on "+c.link.route.last().String())
	case !s.link.alive():
		return nil, s.link.err
	}
	s.Close()
	return nil, c.public(fmt.Errorf("%w: %w", ErrNoSFTP, err))
}

// sftpInput ends the whole stream when the client closes its input, so that
// the client's reader ends too.
type sftpInput struct{ *Stream }

func (i sftpInput) Close() error { return i.Stream.Close() }

// start starts something on a session: on the shared connection, else on one of
// this reference's own.
func (c *Conn) start(ctx context.Context, launch func(*ssh.Session) error) (*Stream, error) {
	s, err := c.startOn(ctx, c.link, launch)
	if !sessionRefused(err) {
		return s, err
	}
	c.mu.Lock()
	c.extra = slices.DeleteFunc(c.extra, func(l *link) bool {
		if l.alive() {
			return false
		}
		c.pool.drop(l)
		return true
	})
	extra := slices.Clone(c.extra)
	c.mu.Unlock()
	for _, l := range extra {
		if s, err = c.startOn(ctx, l, launch); err == nil {
			return s, nil
		}
	}
	if _, used := c.link.settling(); !used {
		return nil, fmt.Errorf("%w: it refuses the first: %w", ErrSessionsExhausted, err)
	}
	if len(extra) >= maxExtra {
		return nil, fmt.Errorf("%w: %d connections are in use", ErrSessionsExhausted, len(extra)+1)
	}
	c.pool.log.Debug("the server allows no more sessions on one connection", "route", c.link.route.String())
	l, err := c.pool.dialOwn(ctx, c.link.route)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		c.pool.drop(l)
		return nil, errConnClosed()
	}
	c.extra = append(c.extra, l)
	c.mu.Unlock()
	s, err = c.startOn(ctx, l, launch)
	if sessionRefused(err) {
		err = fmt.Errorf("%w: %w", ErrSessionsExhausted, err)
	}
	return s, err
}

// startOn starts something on one connection, and waits for as long as a session
// that has just ended may stand in the way.
func (c *Conn) startOn(ctx context.Context, l *link, launch func(*ssh.Session) error) (*Stream, error) {
	deadline := time.NewTimer(settleTimeout)
	defer deadline.Stop()
	for {
		s, err := l.open(ctx, launch)
		if err == nil {
			return c.adopt(s)
		}
		settling, _ := l.settling()
		if !sessionRefused(err) || !settling {
			return nil, err
		}
		again := time.NewTimer(settleEvery)
		select {
		case <-again.C:
		case <-deadline.C:
			again.Stop()
			return nil, err
		case <-ctx.Done():
			again.Stop()
			return nil, contextError(ctx, "waiting for a session on "+l.route.last().String())
		}
	}
}

// sessionRefused reports whether a server has refused a session.
func sessionRefused(err error) bool {
	var refused *ssh.OpenChannelError
	return errors.As(err, &refused)
}

// adopt notes that a stream is this reference's.
func (c *Conn) adopt(s *Stream) (*Stream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		s.Close()
		return nil, errConnClosed()
	}
	c.open[s] = struct{}{}
	s.link.begin(func() {
		<-s.ended
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, s)
	})
	return s, nil
}

// Done is closed when the shared connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.link.done }

// Err says why it has ended; nil before that.
func (c *Conn) Err() error {
	select {
	case <-c.link.done:
		return c.link.err
	default:
		return nil
	}
}

// Close gives the reference back. The streams that were started with it end.
func (c *Conn) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	streams := make([]*Stream, 0, len(c.open))
	for s := range c.open {
		streams = append(streams, s)
	}
	extra := c.extra
	c.mu.Unlock()
	for _, s := range streams {
		s.Close()
	}
	for _, l := range extra {
		c.pool.drop(l)
	}
	c.pool.release(c.link)
	return nil
}
