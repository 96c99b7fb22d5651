//go:build linux

package ssh

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestBackend runs the suite of all backends on a machine that is reached
// directly and on one that is reached over another.
func TestBackend(t *testing.T) {
	t.Run("Plain", func(t *testing.T) { suite(t, newBox(t, sshtest.Options{})) })
	t.Run("Jump", func(t *testing.T) {
		b := newBox(t, sshtest.Options{})
		key := sshtest.NewKey(t, "ed25519", "")
		jump := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
		known := b.proxy.KnownHosts(b.server) + jump.KnownHosts()
		b.client = sshtest.NewClient(t, known, sshtest.HostBlock("jump", jump, key), b.block+"  ProxyJump jump")
		suite(t, b)
	})
}

// suite runs the suite on a machine.
func suite(t *testing.T, box *box) {
	backendtest.Run(t, backendtest.Harness{
		// Closed after the last environment: a part of the suite removes its own in
		// a cleanup that is older than those of the backends that it makes.
		Backend: func(*testing.T) backends.Backend { return newBackend(t) },
		Profile: func(_ *testing.T, mode, ceiling tool.Mode) profile.Profile {
			p := box.profile()
			p.PermissionMode, p.MaxPermissionMode = mode, ceiling
			return p
		},
		Outside:   func(t *testing.T) string { return t.TempDir() },
		Leftovers: func(t *testing.T, b backends.Binding) []string { return leftovers(t, b) },
		Vanish:    vanish,
	})
}

// vanish ends everything of an environment and removes its directory, as a
// machine that is set up anew would.
func vanish(t *testing.T, b backends.Binding) {
	t.Helper()
	for pid := range processes(t, b) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended already
	}
	if err := os.RemoveAll(filepath.Join(b.Profile.Workspace, b.Environment)); err != nil {
		t.Fatal(err)
	}
}
