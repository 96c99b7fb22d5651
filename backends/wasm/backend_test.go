//go:build linux

package wasm

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestBackend runs what of the suite of all backends is about files: there are no
// commands here.
func TestBackend(t *testing.T) {
	const none = "a wasm environment runs WebAssembly modules only"
	backendtest.Run(t, backendtest.Harness{
		Backend: func(t *testing.T) backends.Backend { return New(options(t)) },
		Profile: func(t *testing.T, mode, ceiling tool.Mode) profile.Profile {
			p := pure(t, preopen(t.TempDir(), ""))
			p.PermissionMode, p.MaxPermissionMode = mode, ceiling
			return p
		},
		Outside:   func(t *testing.T) string { return t.TempDir() },
		Leftovers: engines,
		Vanish: func(t *testing.T, b backends.Binding) {
			if err := os.RemoveAll(b.Profile.Preopens[0].Host); err != nil {
				t.Fatal(err)
			}
		},
		Lacks: backendtest.Lacks{
			Commands: none, Shell: none, Git: none, Packs: none,
			Shared: "its directories are the host's, which others may use too",
		},
	})
}

// engines are the engines that this test has started and that still run.
func engines(t *testing.T, _ backends.Binding) []string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, proc := range procs {
		// A process that ended meanwhile, or is another user's, is none of ours.
		exe, err := os.Readlink(filepath.Join(proc, "exe"))
		if err == nil && bytes.HasPrefix([]byte(exe), []byte(built)) {
			left = append(left, fmt.Sprintf("%s: %s", proc, exe))
		}
	}
	return left
}
