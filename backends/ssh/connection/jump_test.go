package connection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// through is a configuration in which box is reached over the jumps, in their
// order; lines are the last host's.
func through(t *testing.T, known string, key sshtest.Key, servers []*sshtest.Server, lines ...string) *sshtest.Client {
	t.Helper()
	var blocks, names []string
	for i, s := range servers[:len(servers)-1] {
		name := fmt.Sprintf("jump%d", i)
		names = append(names, name)
		blocks = append(blocks, sshtest.HostBlock(name, s, key, "StrictHostKeyChecking no"))
	}
	lines = append([]string{"ProxyJump " + strings.Join(names, ","), "StrictHostKeyChecking no"}, lines...)
	blocks = append(blocks, sshtest.HostBlock("box", servers[len(servers)-1], key, lines...))
	return sshtest.NewClient(t, known, blocks...)
}

// TestJump: over one and two hosts, each checked by itself, in this process and
// by OpenSSH, whose jumps would not be strict by themselves.
func TestJump(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	var servers []*sshtest.Server
	var known []string
	for range 3 {
		s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
		servers = append(servers, s)
		known = append(known, s.KnownHosts())
	}
	for _, way := range []struct {
		name  string
		lines []string
	}{
		{"here", nil},
		{"OpenSSH", []string{"Compression yes"}},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			for n := 2; n <= len(servers); n++ {
				c := through(t, strings.Join(known, ""), key, servers[:n], way.lines...)
				conn := dial(t, newPool(t), c, "box")
				if (conn.link.route.beyond != "") != (way.lines != nil) {
					t.Fatalf("OpenSSH for %q", conn.link.route.beyond)
				}
				says(t, conn, "echo $SSH_CONNECTION | cut -d' ' -f4", fmt.Sprintln(servers[n-1].Port))
			}
			for i, s := range servers {
				unknown := strings.Join(append(append([]string{}, known[:i]...), known[i+1:]...), "")
				c := through(t, unknown, key, servers, way.lines...)
				p := newPool(t)
				e := refusal(t, p, resolve(t, p, c, "box"))
				has(t, e.Message, "host key", fmt.Sprint(s.Port), s.HostKeys[0].Fingerprint(t))
				has(t, e.Hint, "ssh-keyscan")
				if i > 0 {
					has(t, e.Hint, fmt.Sprintf("jump%d 'ssh-keyscan", i-1))
				}
			}
		})
	}
}

// TestJumpEnds: when the jump goes, so does what runs over it.
func TestJumpEnds(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	jump := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	box := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	c := through(t, jump.KnownHosts()+box.KnownHosts(), key, []*sshtest.Server{jump, box})
	conn := dial(t, newPool(t), c, "box")
	s, err := conn.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	jump.Drop()
	wantLost(t, s)
	<-conn.Done()
}

// TestJumpSilent: a host behind a jump that says nothing.
func TestJumpSilent(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	jump := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	silent := &sshtest.Server{Host: "127.0.0.1", Port: sshtest.Silent(t, ""), User: jump.User}
	c := through(t, jump.KnownHosts(), key, []*sshtest.Server{jump, silent}, "ConnectTimeout 1")
	p := newPool(t)
	_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
	wantRetryable(t, err, "did not answer as an ssh server within 1s")
}
