package store

import (
	"errors"
	"os"
	"testing"
)

// A session can be locked, and so be removed, when its disk is full.
func TestLockOnFullDisk(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	file := s.session("a", "lock")
	if err := errors.Join(os.Remove(file), os.Symlink("/dev/full", file)); err != nil {
		t.Fatal(err)
	}
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := s.LockSession(t.Context(), "a"); !errors.As(err, &busy) || busy.PID != 0 {
		t.Errorf("the second owner gets %v", err)
	}
	if err := errors.Join(s.Forget("a"), l.Release()); err != nil {
		t.Fatal(err)
	}
}
