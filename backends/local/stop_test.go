//go:build linux

package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// ways are how a session's worker is ended by a service that has not used it.
var ways = map[string]func(*testing.T, *Backend, backends.Binding) error{
	"shutdown": func(t *testing.T, b *Backend, at backends.Binding) error {
		env, err := b.Open(t.Context(), at, nil)
		if err != nil {
			return err
		}
		return env.Shutdown(t.Context())
	},
	"remove": func(t *testing.T, b *Backend, at backends.Binding) error { return b.Remove(t.Context(), at) },
}

// killed runs a worker and kills it.
func killed(t *testing.T, at backends.Binding) {
	t.Helper()
	env := open(t, at)
	run(t, env, "true")
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(workerPID(t, at), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitWorkerEnd(t, at)
}

// A worker that is killed leaves its socket. It goes with the session, which a
// service ends that has not used the worker.
func TestKilledWorkersSocketGoes(t *testing.T) {
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			at := binding(t)
			killed(t, at)
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

// An end that comes late, when another one has removed all of the session and its
// next worker runs already, leaves that one alone: it is reached and has its state.
func TestLateEndSparesTheNextWorker(t *testing.T) {
	for name, end := range ways {
		t.Run(name, func(t *testing.T) {
			at := binding(t)
			killed(t, at)
			path := worker.LockPath(workerState(at), at.Session)
			earlier, err := endpoint.Acquire(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			late := make(chan error, 1)
			go func() { late <- end(t, New(Options{}), at) }()
			awaitOpened(t, path, 2)
			if err := errors.Join(os.Remove(workerOptions(at).Listen), os.RemoveAll(workerState(at))); err != nil {
				t.Fatal(err)
			}
			next := open(t, at)
			run(t, next, "true")
			pid := workerPID(t, at)

			if err := earlier.Unlock(); err != nil {
				t.Fatal(err)
			}
			if err := <-late; err != nil {
				t.Errorf("the late end: %v", err)
			}
			if got := workerPID(t, at); got != pid {
				t.Errorf("the worker that came after is process %d, and %d is reached", pid, got)
			}
			if held, err := endpoint.Held(path); err != nil || !held {
				t.Errorf("the lock of the worker that came after is held: %t, %v", held, err)
			}
			run(t, next, "true")
		})
	}
}

// What a session leaves is removed while no worker of it can start.
func TestNoWorkerStartsDuringTheRemoval(t *testing.T) {
	at := binding(t)
	killed(t, at)
	removed := false
	err := New(Options{}).stopWorker(t.Context(), at, func() error {
		removed = true
		if held, err := endpoint.Held(worker.LockPath(workerState(at), at.Session)); err != nil || !held {
			t.Errorf("the lock is held: %t, %v", held, err)
		}
		return nil
	})
	if err != nil || !removed {
		t.Errorf("removed: %t, %v", removed, err)
	}
}

// awaitOpened returns when this process has the file open so many times.
func awaitOpened(t *testing.T, path string, times int) {
	t.Helper()
	const descriptors = "/proc/self/fd"
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		entries, err := os.ReadDir(descriptors)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range entries {
			if to, err := os.Readlink(filepath.Join(descriptors, e.Name())); err == nil && to == path {
				n++
			}
		}
		if n >= times {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is open %d times", path, n)
		}
	}
}
