//go:build linux

package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestBackend runs the suite of all backends in an opened folder and without
// one.
func TestBackend(t *testing.T) {
	for name, inFolder := range map[string]bool{"Folder": true, "NoFolder": false} {
		t.Run(name, func(t *testing.T) {
			backendtest.Run(t, backendtest.Harness{
				Backend: func(*testing.T) backends.Backend { return New(Options{}) },
				Profile: func(_ *testing.T, mode, ceiling tool.Mode) profile.Profile {
					p := profile.BuiltIn(profile.Defaults{})
					p.PermissionMode, p.MaxPermissionMode = mode, ceiling
					p.Lifetime = 2 * time.Minute // so that a failed test leaves nothing for long
					return p
				},
				WorkspaceFolder: inFolder,
				Outside:         func(t *testing.T) string { return t.TempDir() },
				Leftovers:       leftovers,
				Lacks:           backendtest.Lacks{Shared: "a local session works in the opened folder, which others may open too"},
				Vanish: func(t *testing.T, b backends.Binding) {
					dir := b.WorkspaceFolder
					if dir == "" {
						dir = ownWorkspace(b)
					}
					if err := os.RemoveAll(dir); err != nil {
						t.Fatal(err)
					}
				},
			})
		})
	}
}

// leftovers are the binding's sockets, and the processes that have its state
// directory in their arguments, as a worker has, or in their environment, as
// every command has.
func leftovers(t *testing.T, b backends.Binding) []string {
	t.Helper()
	var left []string
	sockets, err := filepath.Glob(filepath.Join(b.RuntimeDir, "*.sock"))
	if err != nil {
		t.Fatal(err)
	}
	left = append(left, sockets...)
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range procs {
		if filepath.Base(proc) == strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			// A process that ended meanwhile, or is another user's, is none of ours.
			data, err := os.ReadFile(filepath.Join(proc, file))
			if err == nil && bytes.Contains(data, []byte(b.StateDir)) {
				left = append(left, fmt.Sprintf("%s: %.100q", proc, data))
				break
			}
		}
	}
	return left
}
