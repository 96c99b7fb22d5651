//go:build unix

package engine

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestPipe: what is no regular file is not opened as if it were one.
func TestPipe(t *testing.T) {
	c := started(t, Setup{MemoryPages: 16})
	r := asked(t, command())
	pipe(t, r.Path)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := c.Call(ctx, MethodRun, r, nil); tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("a module that is a pipe: %v", err)
	}
}

// pipe puts a pipe in the place of a file.
func pipe(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
