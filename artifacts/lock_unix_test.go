//go:build unix

package artifacts

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/diskfile"
)

// A child that is being started has all our descriptors until its program begins.
// It does not keep a lock that was given back.
func TestLockIsNotTheChilds(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	unlock, err := s.lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(descriptor(t, filepath.Join(dir, lockFile))) // as a fork has it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	unlock()
	f, err := os.Open(filepath.Join(dir, lockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if free, err := diskfile.TryLock(f); err != nil || !free {
		t.Errorf("the lock that was given back is free: %t, %v", free, err)
	}
}

// descriptor is this process's own of an open file.
func descriptor(t *testing.T, file string) int {
	t.Helper()
	var want, have unix.Stat_t
	if err := unix.Stat(file, &want); err != nil {
		t.Fatal(err)
	}
	for fd := range 1024 {
		if unix.Fstat(fd, &have) == nil && have.Dev == want.Dev && have.Ino == want.Ino {
			return fd
		}
	}
	t.Fatalf("%s is not open", file)
	return -1
}
