//go:build unix

package endpoint

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A child that is being started has all our descriptors until its program begins.
// It does not keep a lock that was given back.
func TestLockIsNotTheChilds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(l.file.Fd())) // as a fork has it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if held, err := Held(path); held || err != nil {
		t.Errorf("it is still held: %t, %v", held, err)
	}
}
