//go:build unix

package connection

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// TestMasterEnds: no process is left of a master, whoever ends it.
func TestMasterEnds(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, command))
	p := newPool(t)
	r := resolve(t, p, c, "box")
	m, err := startMaster(r)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := m.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(m.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Fatalf("%v %v", info, err)
	}
	conn.Close()
	m.stop()
	if _, err := os.Stat(m.dir); !os.IsNotExist(err) {
		t.Errorf("its directory is left: %v", err)
	}
	if err := syscall.Kill(m.cmd.Process.Pid, 0); err == nil {
		t.Error("its process is left")
	}
	// One that is killed ends the connection.
	m, err = startMaster(r)
	if err != nil {
		t.Fatal(err)
	}
	conn, err = m.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.joinMaster(r, m, conn)
	if err != nil {
		t.Fatal(err)
	}
	killGroup(m.cmd.Process)
	<-l.done
	l.close()
}

// TestMasterStops: a master that does nothing any more is as good as dead.
func TestMasterStops(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, command))
	p := newPool(t)
	m, err := startMaster(resolve(t, p, c, "box"))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := m.connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := p.joinMaster(resolve(t, p, c, "box"), m, conn)
	if err != nil {
		t.Fatal(err)
	}
	if !m.greets() {
		t.Error("a master that lives does not greet")
	}
	if err := syscall.Kill(m.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	select {
	case <-l.done:
		has(t, l.err.Error(), "does not answer")
	case <-time.After(aliveEvery + aliveTimeout + patience):
		t.Error("a master that was stopped was not noticed")
		killGroup(m.cmd.Process)
	}
	l.close()
}
