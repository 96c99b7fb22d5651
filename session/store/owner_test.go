package store

import (
	"errors"
	"os"
	"testing"
	"time"
)

// Who has a session can be seen without being in anybody's way, and each change rings.
func TestOwner(t *testing.T) {
	s := open(t)
	rang := func(what string) {
		t.Helper()
		if err := os.Remove(s.Bell()); err != nil {
			t.Errorf("%s rang no bell: %v", what, err)
		}
	}
	owned := func(want int) {
		t.Helper()
		if pid, err := s.Owner("a"); err != nil || pid != want {
			t.Errorf("the owner is %d, %v, want %d", pid, err, want)
		}
	}
	owned(0)
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	rang("taking it")
	if err := s.Save(session("a")); err != nil {
		t.Fatal(err)
	}
	rang("saving it")
	owned(os.Getpid())
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	rang("giving it up")
	owned(0)

	// What a service left that was killed, though its number is another process's now.
	if err := os.WriteFile(s.session("a", "lock"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	owned(0)
	if raw, err := os.ReadFile(s.session("a", "lock")); err != nil || len(raw) > 0 {
		t.Errorf("the lock still says %q, %v", raw, err)
	}
	if l, err = s.LockSession(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	rang("taking it again")
	if err := errors.Join(s.Forget("a"), l.Release()); err != nil {
		t.Fatal(err)
	}
	rang("forgetting it")
	owned(0)
	if _, err := s.Owner("../a"); !errors.Is(err, ErrID) {
		t.Errorf("got %v", err)
	}
}

// Whoever is just signing or giving up a lock is no owner to be told of.
func TestUnsignedLockIsWaitedFor(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	var busy *BusyError
	if _, err := s.LockSession(t.Context(), "a"); !errors.As(err, &busy) || busy.PID != 0 {
		t.Errorf("a lock that stays unsigned: %v", err)
	}
	if waited := time.Since(begun); waited < unsignedTries*lockPoll {
		t.Errorf("it was waited for %v only", waited)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}
