package connection

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
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
				p.pauses = slices.Repeat([]time.Duration{time.Second}, int(patience/time.Second))
				r := resolve(t, p, c, "box")
				go func() {
					conn, err := p.Dial(t.Context(), r, nil)
					if err != nil {
						said <- errors.New(explain(err))
						return
					}
					defer conn.Close()
					result, err := run(t.Context(), conn, fmt.Sprintf("echo %d", i), nil)
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
			p.pauses = p.pauses[:2]
			r := resolve(t, p, c, "box")
			_, err := p.Dial(t.Context(), r, nil)
			wantRetryable(t, err, "hung up")
			s.WaitLog(t, "drop connection")
			var e *tool.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, "(3 times within") {
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

// TestSparing: a host that hangs up on whoever comes is not asked more often than a
// firewall that counts lets pass: 6 times within 30 s, of which a person keeps one.
func TestSparing(t *testing.T) {
	t.Parallel()
	_, proxy, c := proxied(t, sshtest.Options{})
	proxy.Refuse(true)
	p := newPool(t)
	_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
	wantRetryable(t, err, "hung up")
	if n := proxy.Accepted(); n < 2 || n > 5 {
		t.Errorf("%d attempts", n)
	}
}

// TestPasses: which hang-ups are worth another attempt.
func TestPasses(t *testing.T) {
	t.Parallel()
	const full, barred = "Exceeded MaxStartups", "Not allowed at this time"
	for _, tt := range []struct {
		said                 string
		direct, proxyCommand bool
	}{{"", true, false}, {full, true, true}, {barred, true, false}, {"HTTP/1.1 400", false, false}} {
		for proxied, want := range map[bool]bool{false: tt.direct, true: tt.proxyCommand} {
			if got := (&hangUp{said: tt.said, proxied: proxied}).passes(); got != want {
				t.Errorf("%q, behind a ProxyCommand %v: %v", tt.said, proxied, got)
			}
		}
	}
}

// TestOwnTime: an attempt after a hang-up has all the time of one, and what it comes to is
// told: here that the agent has the key and does not sign.
func TestOwnTime(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	agent := sshtest.StartMute(t, sshtest.StartAgent(t, key), 1) // it lists its keys
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	proxy := sshtest.StartProxy(t, s.Addr)
	through := &sshtest.Server{Host: proxy.Host, Port: proxy.Port, User: s.User, HostKeys: s.HostKeys}
	c := sshtest.NewClient(t, through.KnownHosts(), sshtest.HostBlock("box", through, sshtest.Key{},
		"IdentitiesOnly no", "IdentityFile none", "ConnectTimeout 10", "IdentityAgent "+agent))
	p := newPool(t)
	p.pauses = []time.Duration{time.Second}
	proxy.Refuse(true)
	var again time.Time
	_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), func(said string) {
		if strings.Contains(said, "trying again") {
			again = time.Now()
			proxy.Refuse(false)
		}
	})
	var refused *authError
	if !errors.As(err, &refused) {
		t.Fatal(explain(err))
	}
	has(t, explain(err), "would accept the key", "longer than 10s")
	if took := time.Since(again); again.IsZero() || took < 10*time.Second {
		t.Errorf("the second attempt was over after %s", took)
	}
}

// TestInsist: of what an attempt comes to after a hang-up only silence that its caller had
// no time to wait for says less than that, and no attempt begins too late.
func TestInsist(t *testing.T) {
	t.Parallel()
	fault := func(err error) *tool.Error {
		return &tool.Error{Kind: tool.BackendUnavailable, Message: err.Error(), Err: err}
	}
	full, silent := fault(&hangUp{err: io.EOF}), fault(errSilent)
	refused := fault(&authError{a: &authenticator{hop: &hop{}}, cause: io.EOF})
	for name, tt := range map[string]struct {
		within   time.Duration
		deadline bool // the caller's is over in the second attempt
		second   *tool.Error
		want     *tool.Error
		attempts int
	}{
		"refused":             {time.Minute, false, refused, refused, 2},
		"refused at the last": {time.Minute, true, refused, refused, 2},
		"silent":              {time.Minute, false, silent, silent, 2},
		"silent at the last":  {time.Minute, true, silent, full, 2},
		"too late":            {time.Microsecond, false, refused, full, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPool(t)
				limit := 2 * time.Hour
				if tt.deadline {
					limit = time.Hour
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				attempts := 0
				err := p.insist(ctx, "box", tt.within, nil, func() error {
					if attempts++; attempts == 1 {
						e := *full
						return &e
					}
					time.Sleep(time.Hour)
					return tt.second
				})
				if attempts != tt.attempts || !errors.Is(err, tt.want.Err) {
					t.Errorf("%d attempts gave %v", attempts, err)
				}
			})
		})
	}
}

// TestMasterHungUp: a hang-up is told from what a jump or a ProxyCommand says beside it.
func TestMasterHungUp(t *testing.T) {
	t.Parallel()
	const closed = "kex_exchange_identification: Connection closed by remote host\r\nConnection closed by UNKNOWN port 65535\r\n"
	for text, want := range map[string]bool{
		closed: true,
		"debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n" + closed:                                   true,
		"kex_exchange_identification: read: Connection reset by peer\r\n":                                                         true,
		"ssh_exchange_identification: Connection closed by remote host\r\n":                                                       true,
		"banner exchange: Connection to UNKNOWN port 65535: Broken pipe\r\n":                                                      true,
		"banner exchange: Connection to 127.0.0.1 port 22: invalid format\r\n":                                                    false,
		"cat: -: Connection reset by peer\n" + closed:                                                                             true,
		"cat: debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups\r\n-: Connection reset by peer\n" + closed: true,
		"": false,
		"Connection closed by 127.0.0.1 port 22\r\n":                                              false,
		"a@jump: Permission denied (publickey).\r\n" + closed:                                     false,
		"channel 0: open failed: connect failed: refused\r\nstdio forwarding failed\r\n" + closed: false,
		"kex_exchange_identification: banner line contains invalid characters\r\n":                false,
	} {
		if got := masterHungUp(text, false, errors.New("exit status 255")); (got != nil) != want {
			t.Errorf("%v of %q", got, text)
		}
	}
}
