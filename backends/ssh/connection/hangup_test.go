package connection

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// oneAtATime is a server that lets one connection at a time authenticate and hangs up
// on all others, and how a configuration reaches it with these lines.
func oneAtATime(t *testing.T, lines ...string) (*sshtest.Server, *sshtest.Client) {
	t.Helper()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, MaxStartups: 1})
	return s, sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, lines...))
}

// occupy takes the place of who authenticates, until it is closed.
func occupy(t *testing.T, s *sshtest.Server) net.Conn {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	// From here on it counts.
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.HasPrefix(line, "SSH-") {
		t.Fatalf("%q, %v", line, err)
	}
	return conn
}

// turnedAway is how often a server has hung up on whoever came.
func turnedAway(s *sshtest.Server) int {
	return strings.Count(s.Log(), "drop connection")
}

// TestMaxStartups: several sessions at once reach a server that authenticates one at a
// time, in this process and through OpenSSH.
func TestMaxStartups(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"here": nil, "openssh": {command}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := oneAtATime(t, append(lines, "ConnectTimeout 120")...)
			place := occupy(t, s)
			const sessions = 3
			said := make(chan error, sessions)
			for i := range sessions {
				p := newPool(t)
				p.patience = 2 * patience
				r := resolve(t, p, c, "box")
				go func() {
					conn, err := p.Dial(t.Context(), r, nil)
					if err != nil {
						said <- errors.New(explain(err))
						return
					}
					defer conn.Close()
					result, err := conn.Run(t.Context(), fmt.Sprintf("echo %d", i), nil)
					if err == nil && string(result.Stdout) != fmt.Sprintf("%d\n", i) {
						err = fmt.Errorf("it says %q", result.Stdout)
					}
					said <- err
				}()
			}
			s.WaitLog(t, "drop connection")
			place.Close()
			for range sessions {
				if err := <-said; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestMaxStartupsLasts: where no place becomes free that is said, with what is likely the
// cause, after several attempts.
func TestMaxStartupsLasts(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{"here": nil, "openssh": {command}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, c := oneAtATime(t, append(lines, "ConnectTimeout 120")...)
			occupy(t, s)
			p := newPool(t)
			p.patience = 3 * time.Second
			r := resolve(t, p, c, "box")
			_, err := p.Dial(t.Context(), r, nil)
			wantRetryable(t, err, "hung up")
			if n := turnedAway(s); n < 2 {
				t.Errorf("%d attempts", n)
			}
			var e *tool.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, "times within") {
				t.Error(explain(err))
			}
			has(t, e.Hint, "MaxStartups")
		})
	}
}

// TestNoServer: what hangs up with words of its own is no ssh server, and is not tried
// again.
func TestNoServer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan int)
	go func() {
		n := 0
		defer func() { asked <- n }()
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			n++
			// What was sent is read: an end with something unread is a reset, which takes
			// the words along.
			_, _ = bufio.NewReader(conn).ReadString('\n')
			fmt.Fprint(conn, "HTTP/1.1 400 Bad\x1b Request\r\n\r\n")
			conn.Close()
		}
	}()
	c := sshtest.NewClient(t, "", fmt.Sprintf("Host box\n HostName 127.0.0.1\n Port %d\n User u\n", l.Addr().(*net.TCPAddr).Port))
	p := newPool(t)
	_, err = p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
	l.Close()
	wantRetryable(t, err, `hung up with the words "HTTP/1.1 400 Bad\x1b Request"`)
	if n := <-asked; n != 1 {
		t.Errorf("%d attempts", n)
	}
}

// TestMasterHungUp: a hang-up is told from what a jump or a ProxyCommand says beside it.
func TestMasterHungUp(t *testing.T) {
	t.Parallel()
	const closed = "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by UNKNOWN port 65535\r\n"
	for text, want := range map[string]bool{
		closed: true,
		"debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n" + closed: true,
		"kex_exchange_identification: read: Connection reset by peer\r\n":                       true,
		"ssh_exchange_identification: Connection closed by remote host\r\n":                     true,
		"cat: -: Connection reset by peer\n" + closed:                                           true,
		"": false,
		"Connection closed by 127.0.0.1 port 22\r\n":                                              false,
		"a@jump: Permission denied (publickey).\r\n" + closed:                                     false,
		"channel 0: open failed: connect failed: refused\r\nstdio forwarding failed\r\n" + closed: false,
		"kex_exchange_identification: banner line contains invalid characters\r\n":                false,
	} {
		if got := masterHungUp(text, errors.New("exit status 255")); (got != nil) != want {
			t.Errorf("%v of %q", got, text)
		}
	}
}
