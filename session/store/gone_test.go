//go:build unix

package store

import (
	"os"
	"os/exec"
	"testing"
)

// TestGone tells the holder of a lock that runs from one that has ended.
func TestGone(t *testing.T) {
	if gone(os.Getpid()) || gone(0) {
		t.Error("this process runs, and nobody knows who 0 is")
	}
	cmd := exec.CommandContext(t.Context(), "true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if !gone(cmd.Process.Pid) {
		t.Error("a process that has ended is gone")
	}
}
