package connection

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// patience is how long what should happen at once may take on a loaded machine.
const patience = time.Minute

// within fails the test when f takes too long.
func within(t *testing.T, limit time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s: not within %s", what, limit)
	}
}

// wantLost wants a stream's reads and writes to fail soon, and with the right
// error.
func wantLost(t *testing.T, s *Stream) {
	t.Helper()
	within(t, patience, "the end of a stream", func() {
		_, err := io.Copy(io.Discard, s)
		if e := (*tool.Error)(nil); !errors.As(err, &e) || e.Kind != tool.BackendUnavailable || !e.Retryable || errors.Is(err, io.EOF) {
			t.Errorf("reading: %v", err)
		}
		for err = nil; err == nil; {
			_, err = s.Write(make([]byte, 1<<20))
		}
		if tool.KindOf(err) != tool.BackendUnavailable {
			t.Errorf("writing: %v", err)
		}
		if _, err := s.Wait(t.Context()); tool.KindOf(err) != tool.BackendUnavailable {
			t.Errorf("waiting: %v", err)
		}
	})
}

// wantRetryable wants an error that may be gone the next time.
func wantRetryable(t *testing.T, err error, part string) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || !e.Retryable || e.Hint == "" || e.Kind != tool.BackendUnavailable || !strings.Contains(e.Message, part) {
		t.Fatalf("got %v", err)
	}
}

// proxied is a server behind a proxy, and a configuration in which box is
// reached through that.
func proxied(t *testing.T, o sshtest.Options, lines ...string) (*sshtest.Server, *sshtest.Proxy, *sshtest.Client) {
	t.Helper()
	key := sshtest.NewKey(t, "ed25519", "")
	o.Authorized = append(o.Authorized, key)
	s := sshtest.Start(t, o)
	proxy := sshtest.StartProxy(t, s.Addr)
	block := sshtest.HostBlock("box", &sshtest.Server{Host: proxy.Host, Port: proxy.Port, User: s.User}, key, lines...)
	return s, proxy, sshtest.NewClient(t, proxy.KnownHosts(s), block)
}

// TestUnreachable: nobody there, somebody who says nothing, somebody who hangs
// up, and no such name.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	hangup := sshtest.StartProxy(t, "127.0.0.1:1")
	hangup.Refuse(true)
	for _, tt := range []struct {
		name, host string
		port       int
		want       string
	}{
		{"refused", "127.0.0.1", sshtest.Closed, "refused"},
		{"silent", "127.0.0.1", sshtest.Silent(t, ""), "did not answer as an ssh server within 1s"},
		{"slow", "127.0.0.1", sshtest.Silent(t, "SSH-2.0-slow\r\n"), "longer than 1s"},
		{"hangs up", "127.0.0.1", hangup.Port, ""},
		{"no such name", "no-such-host.invalid", 22, "no such host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := sshtest.NewClient(t, "", fmt.Sprintf("Host box\n HostName %s\n Port %d\n User u\n ConnectTimeout 1\n", tt.host, tt.port))
			within(t, patience, "dial", func() {
				_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
				wantRetryable(t, err, tt.want)
			})
		})
	}
}

// TestDialGivenUp: whoever no longer waits is let go at once.
func TestDialGivenUp(t *testing.T) {
	t.Parallel()
	p := newPool(t)
	c := sshtest.NewClient(t, "", fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n User u\n", sshtest.Silent(t, "")))
	r := resolve(t, p, c, "box")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := p.Dial(ctx, r, nil); tool.KindOf(err) != tool.Timeout {
		t.Fatal(err)
	}
	within(t, patience, "closing the pool", func() { p.Close() })
	if _, err := p.Dial(t.Context(), r, nil); tool.KindOf(err) != tool.Cancelled {
		t.Fatal(err)
	}
}

// TestCut: a connection that is cut ends everything on it at once; the next one
// works.
func TestCut(t *testing.T) {
	t.Parallel()
	_, proxy, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	conn := dial(t, p, c, "box")
	reading, err := conn.Exec(t.Context(), "sleep 600")
	if err != nil {
		t.Fatal(err)
	}
	writing, err := conn.Exec(t.Context(), "cat >/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	proxy.CutAfter(3 << 20)
	var written int
	for err == nil {
		var n int
		n, err = writing.Write(make([]byte, 1<<20))
		written += n
	}
	if tool.KindOf(err) != tool.BackendUnavailable || written > 10<<20 {
		t.Fatalf("%d bytes, then %v", written, err)
	}
	wantLost(t, reading)
	wantLost(t, writing)
	<-conn.Done()
	if conn.Err() == nil {
		t.Error("no reason")
	}
	if _, err := conn.Exec(t.Context(), "true"); tool.KindOf(err) != tool.BackendUnavailable {
		t.Errorf("a command on a lost connection: %v", err)
	}
	says(t, dial(t, p, c, "box"), "echo again", "again\n")
}

// TestHangsUp: a server that ends the connection of whom it has let in is told from a
// link that was lost.
func TestHangsUp(t *testing.T) {
	t.Parallel()
	server, _, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	conn := dial(t, p, c, "box")
	server.Drop()
	<-conn.Done()
	if said := explain(conn.Err()); !strings.Contains(said, "hung up before anything could run") || !strings.Contains(said, "ChrootDirectory") {
		t.Error(said)
	}
	conn = dial(t, p, c, "box")
	says(t, conn, "echo in", "in\n")
	server.Drop()
	<-conn.Done()
	if said := explain(conn.Err()); !strings.Contains(said, "was lost") && !strings.Contains(said, "has ended") {
		t.Error(said)
	}
}

// TestDead: a link that stalls and a server that hangs are noticed within 15 s.
func TestDead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lines []string
		stop  func(*sshtest.Server, *sshtest.Proxy)
	}{
		{"stalled", nil, func(_ *sshtest.Server, p *sshtest.Proxy) { p.Stall() }},
		{"frozen", nil, func(s *sshtest.Server, _ *sshtest.Proxy) { s.Freeze() }},
		{"frozen, OpenSSH", []string{command}, func(s *sshtest.Server, _ *sshtest.Proxy) { s.Freeze() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, proxy, c := proxied(t, sshtest.Options{}, tt.lines...)
			conn := dial(t, newPool(t), c, "box")
			reading, err := conn.Exec(t.Context(), "cat")
			if err != nil {
				t.Fatal(err)
			}
			tt.stop(server, proxy)
			defer server.Thaw()
			// A blocked stream can be closed, long before anything is noticed.
			blocked, err := conn.startBlocked(t, reading)
			if err != nil {
				t.Fatal(err)
			}
			blocked()
			start := time.Now()
			<-conn.Done()
			// What is left is for a loaded machine.
			if took := time.Since(start); took > aliveEvery+aliveTimeout+patience {
				t.Errorf("noticed after %s", took)
			}
			if tt.lines == nil {
				has(t, conn.Err().Error(), "is dead")
			}
		})
	}
	if aliveEvery+aliveTimeout >= 15*time.Second {
		t.Error("a dead link is to be noticed within 15 s")
	}
}

// startBlocked has a Read and a Write of a stream block, and returns what closes
// it and wants both to return.
func (c *Conn) startBlocked(t *testing.T, s *Stream) (func(), error) {
	var both sync.WaitGroup
	both.Go(func() {
		if _, err := s.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("reading: %v", err)
		}
	})
	filling := make(chan struct{})
	var once sync.Once
	both.Go(func() {
		for {
			n, err := s.Write(make([]byte, streamBuffer))
			if err != nil {
				if !errors.Is(err, os.ErrClosed) {
					t.Errorf("writing %d: %v", n, err)
				}
				return
			}
			once.Do(func() { close(filling) })
		}
	})
	<-filling
	return func() {
		within(t, patience, "closing a blocked stream", func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			both.Wait()
		})
	}, nil
}

// TestSilent: how long nothing has come in.
func TestSilent(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c := newHeardConn(a)
	c.start = c.start.Add(-time.Minute)
	if c.silent() < time.Minute {
		t.Error("silent from the start")
	}
	go b.Write([]byte("x"))
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if c.silent() > time.Minute/2 {
		t.Error("silent although something came in")
	}
}

// TestOneSession: a server that allows one session at a time. What comes one
// after the other shares a connection; what comes beside the first gets its own.
func TestOneSession(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name  string
		lines []string
	}{{"here", nil}, {"OpenSSH", []string{command}}} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			_, proxy, c := proxied(t, sshtest.Options{MaxSessions: 1}, way.lines...)
			conn := dial(t, newPool(t), c, "box")
			for range 5 {
				says(t, conn, "echo one", "one\n")
				f, err := conn.SFTP(t.Context())
				if err != nil {
					t.Fatal(explain(err))
				}
				if _, err := f.Stat("/"); err != nil {
					t.Fatal(err)
				}
				f.Close()
			}
			if n := proxy.Accepted(); n != 1 {
				t.Errorf("%d connections for one session at a time", n)
			}
			worker, err := conn.Exec(t.Context(), "cat")
			if err != nil {
				t.Fatal(err)
			}
			says(t, conn, "echo beside", "beside\n")
			says(t, conn, "echo again", "again\n")
			if n := proxy.Accepted(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
			if _, err := worker.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if err := worker.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if out, err := io.ReadAll(worker); err != nil || string(out) != "x" {
				t.Fatalf("%q %v", out, err)
			}
		})
	}
}

// TestNoSession: a server that allows none.
func TestNoSession(t *testing.T) {
	t.Parallel()
	// MaxSessions 0 stands for shells and the like; the test's own default is
	// taken for 0.
	_, _, c := proxied(t, sshtest.Options{Lines: []string{"MaxSessions 0"}})
	conn := dial(t, newPool(t), c, "box")
	_, err := conn.Exec(t.Context(), "true")
	if !errors.Is(err, ErrSessionsExhausted) {
		t.Fatalf("got %v", err)
	}
	has(t, explain(err), "MaxSessions")
}

// TestShared: one connection for all that want the same route, kept a while
// longer than the last of them.
func TestShared(t *testing.T) {
	t.Parallel()
	_, proxy, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	r := resolve(t, p, c, "box")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			conn, err := p.Dial(t.Context(), r, nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			if res, err := run(t.Context(), conn, "echo in", nil); err != nil || string(res.Stdout) != "in\n" {
				t.Errorf("%+v %v", res, err)
			}
		})
	}
	all.Wait()
	says(t, dial(t, p, c, "box"), "echo later", "later\n")
	if n := proxy.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
	// Another way of getting there is another connection.
	other, err := p.Resolve(t.Context(), Destination{Host: "box", ConfigFile: c.ConfigFile, KnownHostsFile: c.KnownHostsFile})
	if err != nil {
		t.Fatal(err)
	}
	if other.Key() == r.Key() {
		t.Error("one key for two routes")
	}
}

// TestClosedReference: the streams of a reference end with it, and nobody
// else's.
func TestClosedReference(t *testing.T) {
	t.Parallel()
	_, _, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	one, two := dial(t, p, c, "box"), dial(t, p, c, "box")
	first, err := one.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	second, err := two.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	if err := one.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
	if _, err := one.Exec(t.Context(), "true"); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("got %v", err)
	}
	if _, err := second.Write([]byte("y")); err != nil {
		t.Fatal(err)
	}
	if n, err := second.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
}

// TestPause: a route that could not be followed is not hammered; one that was
// refused for its keys is tried at once.
func TestPause(t *testing.T) {
	t.Parallel()
	_, proxy, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	p.pauses = nil // each of these is one attempt
	r := resolve(t, p, c, "box")
	proxy.Refuse(true)
	start := time.Now()
	for range 4 {
		_, err := p.Dial(t.Context(), r, nil)
		wantRetryable(t, err, "")
	}
	// At least half of 250, 500 and 1000 ms.
	if took := time.Since(start); took < 875*time.Millisecond {
		t.Errorf("4 attempts within %s", took)
	}
	proxy.Refuse(false)
	says(t, dial(t, p, c, "box"), "echo in", "in\n")
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.shared[r.Key()]; s.failures != 0 {
		t.Errorf("%d failures after a success", s.failures)
	}
}

// TestHurry: whoever comes anew after an outage does not wait for the pause that it
// has led to, and neither does who waits already.
func TestHurry(t *testing.T) {
	t.Parallel()
	_, proxy, c := proxied(t, sshtest.Options{})
	p := newPool(t)
	p.pauses = nil // each of these is one attempt
	r := resolve(t, p, c, "box")
	now := make(chan struct{})
	close(now)
	for _, waiting := range []bool{false, true} {
		proxy.Refuse(true)
		_, err := p.Dial(t.Context(), r, nil)
		wantRetryable(t, err, "")
		proxy.Refuse(false)
		p.mu.Lock()
		p.shared[r.Key()].next = time.Now().Add(time.Hour)
		p.mu.Unlock()
		dialled := make(chan error, 2)
		dial := func(ctx context.Context, progress backends.Progress) {
			conn, err := p.Dial(ctx, r, progress)
			if err == nil {
				conn.Close()
			}
			dialled <- err
		}
		want := 1
		if waiting {
			want = 2
			pausing := make(chan struct{})
			said := sync.OnceFunc(func() { close(pausing) })
			go dial(t.Context(), func(string) { said() })
			<-pausing
		}
		go dial(backends.WithHurry(t.Context(), now), nil)
		for range want {
			if err := <-dialled; err != nil {
				t.Error(explain(err))
			}
		}
		proxy.Cut()
		p.mu.Lock()
		l := p.shared[r.Key()].link
		p.mu.Unlock()
		<-l.done
	}
}
