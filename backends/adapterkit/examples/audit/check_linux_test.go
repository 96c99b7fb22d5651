package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/adapterkit/check"
)

// TestKeeps: it keeps every clause of the protocol that it offers.
func TestKeeps(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// None of it is its own: it is what our worker does, through it.
	keeps(t, 85, self, "audit", "-log", filepath.Join(t.TempDir(), "log"), "--", self, "worker")
}

// TestTypeScriptKeeps: the adapters in TypeScript keep every clause as well.
func TestTypeScriptKeeps(t *testing.T) {
	node, script := built(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	examples := filepath.Dir(filepath.Dir(script))
	keeps(t, 80, node, script, "--log", filepath.Join(t.TempDir(), "log"), "--", self, "worker")
	keeps(t, 60, node, filepath.Join(examples, "files", "main.js"), "--state", t.TempDir())
	keeps(t, 25, node, filepath.Join(examples, "overlay", "main.js"))
}

// TestWorkerKeeps: our own worker does.
func TestWorkerKeeps(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keeps(t, 85, self, "worker")
}

// keeps fails when a clause is broken, or fewer than least are offered.
func keeps(t *testing.T, least int, argv ...string) {
	t.Helper()
	report, err := check.Run(t.Context(), check.Options{Command: argv, Patience: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		if r.Verdict == check.Broken {
			t.Errorf("%s: %s\n%s\n%s", r.Name, r.Detail, strings.Join(r.Frames, "\n"), r.Stderr)
		}
	}
	if n := report.Count(check.Kept); n < least {
		t.Errorf("%d clauses kept, want at least %d", n, least)
	}
	if len(report.Left) > 0 {
		t.Errorf("left running: %v", report.Left)
	}
}
