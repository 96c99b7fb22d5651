//go:build unix

package store

import (
	"errors"
	"os"
	"testing"

	"github.com/caisson-dev/caisson/diskfile"
)

// Who has a session can be seen where nothing may be written, whoever has it and however
// many look.
func TestOwnerIsOnlyRead(t *testing.T) {
	s := open(t)
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	file := s.session("a", "lock")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	if pid, err := s.Owner("a"); err != nil || pid != os.Getpid() {
		t.Errorf("the owner is %d, %v", pid, err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("1"), 0o600), os.Chmod(file, 0o400)); err != nil {
		t.Fatal(err)
	}
	looks, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	if free, err := diskfile.TryShared(looks); err != nil || !free {
		t.Fatalf("it is free: %t, %v", free, err)
	}
	if pid, err := s.Owner("a"); err != nil || pid != 0 {
		t.Errorf("what was left is taken for %d, %v", pid, err)
	}
}
