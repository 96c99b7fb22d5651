//go:build unix

package main

import (
	"os"
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
	keeps(t, 60, self, "files", "-state", t.TempDir())
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
