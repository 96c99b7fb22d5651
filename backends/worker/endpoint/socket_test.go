package endpoint

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// shortDir is a directory whose path is short enough for a socket, wherever the
// tests' own directories are.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "ep") //nolint:usetesting // a test's own directories have long paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestSocketPath(t *testing.T) {
	a, b := SocketPath("/run/x", "one"), SocketPath("/run/x", "two")
	if a == b || a != SocketPath("/run/x", "one") {
		t.Errorf("paths %q and %q do not tell sessions apart", a, b)
	}
	if long := SocketPath("/run/x", strings.Repeat("s", 300)); len(long) != len(a) {
		t.Errorf("the path %q depends on the session's length", long)
	}
}

func TestCheckSocketPath(t *testing.T) {
	for _, c := range []struct {
		path, problem string
	}{
		{"/run/a.sock", ""},
		{"/" + strings.Repeat("a", MaxSocketPath-1), ""},
		{"/" + strings.Repeat("a", MaxSocketPath), "108 bytes"},
		{"a.sock", "not absolute"},
	} {
		err := CheckSocketPath(c.path)
		if c.problem == "" && err != nil || c.problem != "" && (err == nil || !strings.Contains(err.Error(), c.problem)) {
			t.Errorf("CheckSocketPath of %d bytes: %v, want %q", len(c.path), err, c.problem)
		}
	}
}

// The longest path that is let through can really be bound.
func TestListenLongest(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, strings.Repeat("s", MaxSocketPath-len(dir)-1))
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestListen(t *testing.T) {
	dir := filepath.Join(shortDir(t), "a", "b")
	path := filepath.Join(dir, "s")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{dir: 0o700, path: 0o600} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	// A socket that nobody serves any more is replaced.
	first.SetUnlinkOnClose(false)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(conn.Close(), second.Close()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

func TestListenRefusesOpenDirectory(t *testing.T) {
	dir := shortDir(t)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(filepath.Join(dir, "s")); err == nil {
		l.Close()
		t.Error("bound a socket in a directory that others may enter")
	} else if !strings.Contains(err.Error(), "0755") {
		t.Errorf("the error does not name the mode: %v", err)
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d", "lock")
	if held, err := Held(path); held || err != nil {
		t.Fatalf("a missing lock is held: %v, %v", held, err)
	}
	lock, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := Held(path); !held || err != nil {
		t.Errorf("Held of a held lock: %v, %v", held, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	if _, err := Acquire(short, path); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second lock: %v, want a timeout that names the holder", err)
	}
	acquired := make(chan error, 1)
	go func() {
		second, err := Acquire(t.Context(), path)
		if err == nil {
			err = second.Unlock()
		}
		acquired <- err
	}()
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-acquired:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("the lock was not handed over")
	}
}
