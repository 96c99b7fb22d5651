//go:build linux

package local

import (
	"io/fs"
	"os"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends"
)

// A worker that is killed leaves its socket. It goes with the session, which a
// service ends that has not used the worker.
func TestKilledWorkersSocketGoes(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Backend, backends.Binding) error{
		"shutdown": func(t *testing.T, b *Backend, at backends.Binding) error {
			env, err := b.Open(t.Context(), at, nil)
			if err != nil {
				t.Fatal(err)
			}
			return env.Shutdown(t.Context())
		},
		"remove": func(t *testing.T, b *Backend, at backends.Binding) error { return b.Remove(t.Context(), at) },
	} {
		t.Run(name, func(t *testing.T) {
			at := binding(t)
			env := open(t, at)
			run(t, env, "true")
			if err := env.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Kill(workerPID(t, at), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			awaitWorkerEnd(t, at)
			if _, err := os.Lstat(workerOptions(at).Listen); err != nil {
				t.Fatalf("a killed worker is to leave its socket: %v", err)
			}
			if err := end(t, New(Options{}), at); err != nil {
				t.Fatal(err)
			}
			if left, err := fs.Glob(os.DirFS(at.RuntimeDir), "*"); err != nil || len(left) > 0 {
				t.Errorf("the runtime directory still has %v, %v", left, err)
			}
		})
	}
}
