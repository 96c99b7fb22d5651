package connection

import (
	"bytes"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// narrow is a relay to a server that passes on so many bytes a second of what goes
// there, and has no room for more.
func narrow(t *testing.T, s *sshtest.Server, rate int) *sshtest.Server {
	t.Helper()
	const room = 8 << 10
	small := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		var set error
		err := raw.Control(func(fd uintptr) { set = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, room) })
		if err != nil {
			return err
		}
		return set
	}}
	l, err := small.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		both.Wait()
	})
	both.Go(func() {
		client, err := l.Accept()
		if err != nil {
			return // the test is over
		}
		defer client.Close()
		server, err := net.Dial("tcp", s.Addr)
		if err != nil {
			t.Error(err)
			return
		}
		both.Go(func() {
			_, _ = io.Copy(client, server) // until either has ended
			client.Close()
		})
		defer server.Close()
		const piece = 1 << 10
		tick := time.NewTicker(time.Second * piece / time.Duration(rate))
		defer tick.Stop()
		for {
			if _, err := io.CopyN(server, client, piece); err != nil {
				return
			}
			<-tick.C
		}
	})
	return &sshtest.Server{Host: "127.0.0.1", Port: l.Addr().(*net.TCPAddr).Port, User: s.User, HostKeys: s.HostKeys}
}

// TestNarrow: a link that takes longer for what is sent than a dead one is waited for
// is not one, while what is sent arrives.
func TestNarrow(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	// The far end says that it has got something after each 100 KB or so: 2.5 s.
	through := narrow(t, s, 40<<10)
	c := sshtest.NewClient(t, through.KnownHosts(), sshtest.HostBlock("box", through, key))
	p := newPool(t)
	p.every, p.timeout = 200*time.Millisecond, 1200*time.Millisecond
	conn := dial(t, p, c, "box")
	r, err := run(t.Context(), conn, "wc -c", bytes.NewReader(make([]byte, 256<<10)))
	if err != nil || string(r.Stdout) != "262144\n" {
		t.Fatalf("%q, %v", r.Stdout, err)
	}
}
