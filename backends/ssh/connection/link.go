package connection

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/tool"
)

// link is one connection to a machine. It owns the goroutines that belong to
// it and to the streams on it.
type link struct {
	route  *Route
	client *ssh.Client
	// env is what SendEnv and SetEnv give to every session.
	env []variable
	// done is closed when the connection has ended; err is set before.
	done chan struct{}
	err  error

	shut func() error
	work sync.WaitGroup

	mu     sync.Mutex
	cause  error // why it was ended from here
	closed bool
	// sessions is how many there have been, and ended when the last of those that
	// have ended did.
	sessions int
	ended    time.Time
}

// newLink takes over a connection. heard, unless it is nil, is watched for
// signs of life; shut ends what the connection runs through.
func (p *Pool) newLink(r *Route, client *ssh.Client, heard *heardConn, shut func() error) *link {
	l := &link{route: r, client: client, env: r.last().environment(), done: make(chan struct{}), shut: shut}
	l.work.Go(l.watch)
	if heard != nil {
		l.work.Go(func() { l.keepAlive(heard, p.every, p.timeout) })
	}
	return l
}

// watch waits for the end.
func (l *link) watch() {
	err := l.client.Wait()
	l.mu.Lock()
	l.closed = true
	cause, used := l.cause, l.sessions > 0
	l.mu.Unlock()
	hint := "it is made anew when it is needed"
	switch {
	case cause != nil:
	case !used:
		cause = fmt.Errorf("%s let the account in and hung up before anything could run", l.route.last())
		hint = "the log of its ssh server says why, such as a ChrootDirectory that is not there or not root's, or a limit of the account's"
	case errors.Is(err, io.EOF):
		// Not wrapped: whoever reads would take it for the end of a command's output.
		cause = fmt.Errorf("the connection to %s was lost: it was closed at the other side, or on the way", l.route.last())
	case err != nil:
		cause = fmt.Errorf("the connection to %s was lost: %w", l.route.last(), err)
	default:
		cause = fmt.Errorf("the connection to %s has ended", l.route.last())
	}
	l.err = &tool.Error{
		Kind: tool.BackendUnavailable, Message: cause.Error(), Retryable: true, Err: cause,
		Hint: hint,
	}
	close(l.done)
	_ = l.shut() // it has ended: nothing is left to go wrong
}

// errClosed is why a link that nobody needs has ended.
var errClosed = errors.New("the connection was closed")

// end ends the connection for a reason, and does not wait.
func (l *link) end(cause error) {
	l.mu.Lock()
	if l.cause == nil {
		l.cause = cause
	}
	l.mu.Unlock()
	_ = l.shut() // what matters is that it is over
	l.client.Close()
}

// close ends the connection and waits for everything on it.
func (l *link) close() {
	l.end(errClosed)
	<-l.done
	l.work.Wait()
}

// alive reports whether the connection has not ended.
func (l *link) alive() bool {
	select {
	case <-l.done:
		return false
	default:
		return true
	}
}

// begin runs f on a goroutine of the link's; false when it has ended.
func (l *link) begin(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.cause != nil {
		return false
	}
	l.work.Go(f)
	return true
}

// opened counts a session.
func (l *link) opened() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions++
}

// closedSession notes that one has ended.
func (l *link) closedSession() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = time.Now()
}

// settling reports whether a session that has ended may still count against the
// server's limit, and whether there has been any at all.
func (l *link) settling() (settling, used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.ended) < settleWindow, l.sessions > 0
}

// keepAlive asks the far end whether it lives when nothing has come in for a
// time of every, and ends the connection when nothing comes in for timeout then
// either. A slow link that is busy is not a dead one: something comes in, or what
// the question has to wait for goes out.
func (l *link) keepAlive(heard *heardConn, every, timeout time.Duration) {
	tick := time.NewTimer(every)
	defer tick.Stop()
	answered := make(chan struct{}, 1)
	var asked time.Time // zero: no question is open
	for {
		select {
		case <-l.done:
			return
		case <-answered:
			asked = time.Time{}
		case <-tick.C:
		}
		silent := heard.silent()
		wait := every - silent
		switch {
		case wait > 0:
		case asked.IsZero():
			asked = time.Now()
			// It blocks for as long as the far end does.
			if !l.begin(func() {
				if _, _, err := l.client.SendRequest("keepalive@openssh.com", true, nil); err == nil {
					answered <- struct{}{}
				}
			}) {
				return
			}
			heard.leaves() // from here on
			wait = timeout / aliveLooks
		default:
			if heard.leaves() {
				asked = time.Now()
			}
			wait = timeout - min(silent, time.Since(asked))
			if wait <= 0 {
				l.end(fmt.Errorf("the connection to %s is dead: nothing has come in for %s", l.route.last(), silent.Round(time.Second)))
				return
			}
			wait = min(wait, timeout/aliveLooks)
		}
		tick.Reset(wait)
	}
}

// heardConn knows when something was last read from a connection, and what of all
// that was written to it the far end's system has.
type heardConn struct {
	net.Conn
	start time.Time
	// last is when, in nanoseconds after start.
	last atomic.Int64
	// written is how many bytes were, and arrived how many of them had when leaves
	// was last asked, which only one goroutine does.
	written atomic.Int64
	arrived int64
	// greeting is the reader's alone.
	greeting greeting
}

func newHeardConn(c net.Conn) *heardConn { return &heardConn{Conn: c, start: time.Now()} }

// Read reads, and notes when.
func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.last.Store(int64(time.Since(c.start)))
		c.greeting.hear(p[:n])
	}
	return n, err
}

// Write writes, and counts.
func (c *heardConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	return n, err
}

// silent is for how long nothing has come in.
func (c *heardConn) silent() time.Duration {
	return time.Since(c.start) - time.Duration(c.last.Load())
}

// leaves reports whether something has arrived since it was last asked, and more is
// on its way. That a system has taken all of it says nothing about its ssh server.
func (c *heardConn) leaves() bool {
	written := c.written.Load()
	queued := int64(unsent(c.Conn))
	before := c.arrived
	c.arrived = max(before, written-queued)
	return queued > 0 && c.arrived > before
}
