package backends_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/job"
)

// What a killed job has left is listed once and removed, and nothing else: not what a
// living one has, nor what is another backend's or younger than was asked for.
func TestJobsLeft(t *testing.T) {
	dir := t.TempDir()
	const dead, live = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"
	for _, name := range []string{dead, live} {
		lock, err := endpoint.Acquire(t.Context(), filepath.Join(dir, name, "lock"))
		if err != nil {
			t.Fatal(err)
		}
		if name == dead {
			err = lock.Unlock()
		} else {
			defer lock.Unlock()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	at := backends.Binding{Session: "s", Environment: "e", StateDir: dir, Profile: profile.Profile{Backend: profile.WASM}}
	other := backends.Binding{StateDir: t.TempDir(), Profile: profile.Profile{Backend: profile.Local}}
	o := backends.PruneOptions{Bound: []backends.Binding{at, other, at}}
	where := func(at backends.Binding) []string {
		if at.Profile.Backend != profile.WASM {
			t.Error("another backend's were looked for")
		}
		return []string{at.StateDir, filepath.Join(at.StateDir, "none")}
	}
	o.OlderThan = time.Hour
	if found, err := o.JobsLeft(profile.WASM, where, job.Prune); err != nil || len(found) != 0 {
		t.Errorf("young ones: %v, %v", found, err)
	}
	o.OlderThan = 0
	for _, dry := range []bool{true, false} {
		o.DryRun = dry
		found, err := o.JobsLeft(profile.WASM, where, job.Prune)
		if err != nil || len(found) != 1 || found[0].ID != filepath.Join(dir, dead) || found[0].Environment != "e" || found[0].Session != "s" ||
			found[0].Kind != "directory" || found[0].CreatedAt.IsZero() || found[0].Reason == "" {
			t.Errorf("dry run %t: %+v, %v", dry, found, err)
		}
		if _, err := os.Stat(filepath.Join(dir, dead)); (err == nil) != dry {
			t.Errorf("dry run %t: %v", dry, err)
		}
	}
	if found, err := o.JobsLeft(profile.WASM, where, job.Prune); err != nil || len(found) != 0 {
		t.Errorf("again: %v, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(dir, live)); err != nil {
		t.Errorf("a living job's directory: %v", err)
	}
	// A link in the place of the directory leads to nothing that is removed.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if found, err := o.JobsLeft(profile.WASM, func(backends.Binding) []string { return []string{link} }, job.Prune); err == nil || len(found) != 0 {
		t.Errorf("through a link: %v, %v", found, err)
	}
}
