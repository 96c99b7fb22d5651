package sshtest

import (
	"io"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
)

// A Proxy stands between a client and a server, and can cut or stall what passes
// through it. Its zero limits let everything pass.
type Proxy struct {
	Host string
	Port int
	Addr string

	target   string
	listener net.Listener
	work     sync.WaitGroup

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	stalled chan struct{} // not nil while stalled; closed at the end of it
	refuse  bool
	closed  bool
	// up is how many more bytes pass towards the server before reached is called;
	// negative: no limit.
	up       atomic.Int64
	reached  func()
	accepted atomic.Int64
}

// StartProxy starts a proxy to a TCP address. It ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{
		Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, Addr: l.Addr().String(),
		target: target, listener: l, conns: make(map[net.Conn]struct{}),
	}
	p.up.Store(-1)
	p.work.Go(p.accept)
	t.Cleanup(func() {
		p.mu.Lock()
		p.closed = true
		p.mu.Unlock()
		l.Close()
		p.Resume()
		p.Cut()
		p.work.Wait()
	})
	return p
}

// KnownHosts are s's lines of known_hosts, for whoever reaches it through p.
func (p *Proxy) KnownHosts(s *Server) string {
	return (&Server{Host: p.Host, Port: p.Port, HostKeys: s.HostKeys}).KnownHosts()
}

// Accepted is how many connections there have been.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// Cut closes all connections at once.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset is what a cut is like; an orderly end does too
		}
		c.Close()
	}
}

// CutAfter cuts the connection once n more bytes have gone to the server.
func (p *Proxy) CutAfter(n int64) { p.After(n, p.Cut) }

// After calls f, once, when n more bytes have gone to the server, and lets no more
// through before it has returned.
func (p *Proxy) After(n int64, f func()) {
	p.mu.Lock()
	p.reached = f
	p.mu.Unlock()
	p.up.Store(n)
}

// Refuse makes new connections end at once, or no longer.
func (p *Proxy) Refuse(refuse bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = refuse
}

// Stall lets nothing pass, and nothing end, until Resume.
func (p *Proxy) Stall() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled == nil {
		p.stalled = make(chan struct{})
	}
}

// Resume undoes Stall.
func (p *Proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stalled != nil {
		close(p.stalled)
		p.stalled = nil
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // the test is over
		}
		p.accepted.Add(1)
		p.mu.Lock()
		refused := p.refuse || p.closed
		p.mu.Unlock()
		if refused {
			client.Close()
			continue
		}
		server, err := net.Dial("tcp", p.target) //nolint:noctx // loopback does not block
		if err != nil {
			client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		var both sync.WaitGroup
		both.Go(func() { p.pass(server, client, &p.up) })
		both.Go(func() { p.pass(client, server, nil) })
		p.work.Go(func() {
			both.Wait()
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.conns, client)
			delete(p.conns, server)
		})
	}
}

// pass copies until either side ends, and then ends both.
func (p *Proxy) pass(to, from net.Conn, limit *atomic.Int64) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		p.mu.Lock()
		stalled := p.stalled
		p.mu.Unlock()
		if stalled != nil {
			<-stalled
		}
		if limit != nil && limit.Load() >= 0 {
			if left := limit.Add(-int64(n)); left < 0 {
				limit.Store(-1)
				p.mu.Lock()
				reached := p.reached
				p.mu.Unlock()
				first := int64(n) + left
				_, werr := to.Write(buf[:first])
				reached()
				if werr != nil {
					return
				}
				n = copy(buf, buf[first:n])
			}
		}
		if _, werr := to.Write(buf[:n]); werr != nil || err != nil {
			return
		}
	}
}

// Closed is a loopback port on which nobody listens: one that was free a moment ago may be
// somebody's by now.
const Closed = 1

// Silent listens, accepts and says nothing but a greeting, until the test ends. It
// returns the port.
func Silent(t testing.TB, greeting string) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback does not block
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, func(c net.Conn) {
		_, _ = io.WriteString(c, greeting) // the client may be gone
	})
	return l.Addr().(*net.TCPAddr).Port
}

// serve does f with each connection and then nothing until its client gives up. The
// end of the test ends it.
func serve(t testing.TB, l net.Listener, f func(net.Conn)) {
	var work sync.WaitGroup
	work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer c.Close()
				f(c)
				_, _ = io.Copy(io.Discard, c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
}

func (p *Proxy) String() string { return net.JoinHostPort(p.Host, strconv.Itoa(p.Port)) }
