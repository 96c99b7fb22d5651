package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestFullCache: what cannot be kept is said, and leaves nothing.
func TestFullCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	c := started(t, Setup{CacheDir: cache, MemoryPages: 16})
	// Its parent is not ours to clear away.
	if err := errors.Join(os.RemoveAll(cache), os.WriteFile(cache, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := asked(t, command())
	if _, err := c.Call(t.Context(), MethodRun, r, nil); tool.KindOf(err) != tool.Internal || !strings.Contains(err.Error(), "cache of compiled modules") {
		t.Errorf("%s: %v", tool.KindOf(err), err)
	}
	if err := os.Remove(cache); err != nil {
		t.Fatal(err)
	}
	ran(t, c, r)
}

// TestPriority: who stands back does so with all its threads.
func TestPriority(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lowerPriority(cmd.Process.Pid, niceSlow)
	// The system call's answer is 20 less the priority.
	if got, err := unix.Getpriority(unix.PRIO_PROCESS, cmd.Process.Pid); err != nil || got != 20-niceSlow {
		t.Errorf("the priority is %d (%v)", 20-got, err)
	}
	_ = cmd.Process.Kill() // it is there
	_ = cmd.Wait()         // killed
}

// TestAsRootFullDisk: where there is no room for a module, the error says so and where.
func TestAsRootFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=4k"); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	cache := filepath.Join(dir, "cache")
	c := started(t, Setup{CacheDir: cache, MemoryPages: 16})
	_, err := c.Call(t.Context(), MethodRun, asked(t, command()), nil)
	if e, ok := errors.AsType[*tool.Error](err); !ok || !strings.HasPrefix(e.Message, "no space is left on the disk of "+cache) || e.Hint == "" {
		t.Errorf("%v", err)
	}
}
