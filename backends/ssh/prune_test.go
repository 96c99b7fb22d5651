//go:build linux

package ssh

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// deadPID is the number of a process of this machine that has ended.
func deadPID(t testing.TB) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// Only what is proven to be ours and ownerless is removed.
func TestPrune(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	dead := newBackend(t)
	dead.owner.PID = deadPID(t)
	abroad := newBackend(t)
	abroad.owner.Host, abroad.owner.PID = "another-machine", dead.owner.PID
	store := "store-" + random()
	made := func(b *Backend) backends.Binding {
		t.Helper()
		binding := box.newBinding(t)
		binding.Store = store
		env, err := b.Open(t.Context(), binding, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := env.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		binding.Provisioned = true
		t.Cleanup(func() {
			if err := b.Remove(testContext(t), binding); err != nil {
				t.Error(err)
			}
		})
		return binding
	}
	gone, known, living, far := made(dead), made(dead), made(newBackend(t)), made(abroad)
	elsewhere := box.newBinding(t)
	elsewhere.Store = "another-" + store
	if err := (&host{backend: dead}).Create(t.Context(), elsewhere, nil); err != nil {
		t.Fatal(err)
	}
	unfinished := filepath.Join(box.parent, ".caisson-new-1")
	cut := box.newBinding(t)
	cut.Store = store
	if err := (&host{backend: dead}).Create(t.Context(), cut, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(directory(cut), unfinished); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(box.home, ".cache", "caisson", "worker", "v0-0123456789abcdef")
	long := time.Now().Add(-2 * workerAge)
	if err := errors.Join(os.Mkdir(old, 0o700), os.Chtimes(old, long, long)); err != nil {
		t.Fatal(err)
	}

	// The same directory by another name is told of once.
	again := box.profile()
	again.Workspace += "/."

	var passedOver []string
	o := backends.PruneOptions{
		DryRun: true, Store: store, Live: map[string]bool{known.Environment: true},
		Profiles: []profile.Profile{
			{Backend: profile.Docker}, box.profile(), box.profile(), again,
			{Backend: profile.SSH, Host: "127.0.0.1", Port: 1, SSHConfig: box.client.ConfigFile, Workspace: "/w"},
		},
		Unreached: func(place string, _ error) { passedOver = append(passedOver, place) },
	}
	b := newBackend(t)
	for _, o.DryRun = range []bool{true, false} {
		found, err := b.Prune(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		said := map[string]string{}
		for _, r := range found {
			if r.Backend != profile.SSH || r.Reason == "" {
				t.Errorf("%+v", r)
			}
			said[r.ID[strings.LastIndexByte(r.ID, '/')+1:]] = r.Kind
		}
		want := map[string]string{gone.Environment: "directory", ".caisson-new-1": "directory", filepath.Base(old): "worker"}
		for name, kind := range want {
			if said[name] != kind {
				t.Errorf("%s is %q, want %q", name, said[name], kind)
			}
		}
		if len(found) != len(want) {
			t.Errorf("found %+v", found)
		}
		for _, path := range []string{directory(gone), unfinished, old} {
			if exists(path) != o.DryRun {
				t.Errorf("dry run %v: %s is there: %v", o.DryRun, path, exists(path))
			}
		}
	}
	if len(passedOver) != 2 || !strings.Contains(passedOver[0], "127.0.0.1") {
		t.Errorf("passed over %q", passedOver)
	}
	for _, binding := range []backends.Binding{known, living, far, elsewhere} {
		if !exists(directory(binding)) {
			t.Errorf("%s was removed", binding.Environment)
		}
	}
	if err := dead.Remove(t.Context(), elsewhere); err != nil {
		t.Error(err)
	}
	until(t, "the end of the worker", func() bool { return len(processes(t, gone)) == 0 })
}

// A machine that lets its account in and runs no commands keeps nothing from being
// pruned elsewhere.
func TestPrunePassesOver(t *testing.T) {
	box := newBox(t, sshtest.Options{Lines: []string{"ForceCommand /bin/false"}})
	var reason error
	found, err := newBackend(t).Prune(t.Context(), backends.PruneOptions{
		Store: "store-" + random(), Profiles: []profile.Profile{box.profile()},
		Unreached: func(_ string, err error) { reason = err },
	})
	if err != nil || len(found) > 0 || reason == nil || !strings.Contains(reason.Error(), "does not run commands: it ended with 1: it said nothing") {
		t.Errorf("%+v, %v; passed over: %v", found, err, reason)
	}
}
