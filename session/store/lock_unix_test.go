//go:build unix

package store

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A child that is being started has all our descriptors until its program begins.
// It does not keep a lock that was given back.
func TestLockIsNotTheChilds(t *testing.T) {
	s := open(t)
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(l.f.Fd())) // as a fork has it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
