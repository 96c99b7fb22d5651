package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/session/store"
)

// heard is a sink that passes on what a follower tells, in order.
type heard struct {
	discard
	seen      chan Session
	artifacts chan struct{}
	takes     time.Duration // how long it takes to be told of a session
	gone      chan string   // nil for who need not hear of ends
}

func (h *heard) SessionRemoved(id string) {
	if h.gone != nil {
		h.gone <- id
	}
}

func (h *heard) SessionSeen(s Session) {
	time.Sleep(h.takes)
	h.seen <- s
}

func (h *heard) ArtifactsChanged() { h.artifacts <- struct{}{} }

// following is a manager on a new state directory whose sink that is.
func following(t *testing.T, h *heard) *Manager {
	t.Helper()
	h.seen, h.artifacts = make(chan Session, 100), make(chan struct{}, 100)
	dir := t.TempDir()
	published, err := artifacts.Open(filepath.Join(dir, "artifacts"), artifacts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Options{
		StateDir: filepath.Join(dir, "state"), RuntimeDir: filepath.Join(dir, "run"),
		Registry: backends.NewRegistry(), Artifacts: published, Sink: h,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(m.Shutdown(context.Background()), published.Close()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// saved saves a session as another service does, which has it until the lock is released.
func saved(t *testing.T, m *Manager, id string) *store.Lock {
	t.Helper()
	lock, err := m.store.LockSession(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	err = m.store.Save(store.Session{ID: id, Place: store.Place{
		Profile: profile.BuiltIn(profile.Defaults{}), Environment: "caisson-0123456789abcdef0123456789abcdef",
	}})
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

// asked reports whether another look was requested, and takes the request.
func (f *follower) asked() bool {
	select {
	case <-f.asks:
		return true
	default:
		return false
	}
}

// An answer that is older than what was told meanwhile is put right by another look.
func TestOlderAnswer(t *testing.T) {
	f := following(t, new(heard)).follow
	open, closed := Session{ID: "s-a", State: StateBound, HeldBy: 1}, Session{ID: "s-a", State: StateClosed}
	f.note(open)
	if f.asked() {
		t.Error("nobody follows, and there is a look")
	}
	f.told = map[string]*aspect{"s-a": aspectOf(closed)}
	f.note(closed)
	if f.asked() {
		t.Error("the answer is what was told, and there is another look")
	}
	f.note(open)
	if !f.asked() {
		t.Error("the answer is not what was told, and there is no other look")
	}
	delete(f.told, "s-a")
	f.note(open)
	if !f.asked() {
		t.Error("the answer is of a session whose end was told, and there is no other look")
	}
}

// A session that was told while a list was read in which it is not yet is told again: the
// list takes it away from whoever gets it. So is the end of one that is gone.
func TestMissedByList(t *testing.T) {
	h := &heard{gone: make(chan string, 10)}
	m := following(t, h)
	f := m.follow
	of := func(id string) *aspect { return aspectOf(Session{ID: id, State: StateBound, HeldBy: os.Getpid()}) }
	f.told = map[string]*aspect{"s-new": of("s-new"), "s-gone": of("s-gone"), "s-own": of("s-own")}
	own := m.newLive(store.Session{ID: "s-own"}, nil)
	if err := m.add(own); err != nil {
		t.Fatal(err)
	}
	defer m.remove(own)
	if list, err := m.List(t.Context(), Filter{State: StateClosed}); err != nil || len(list) != 0 {
		t.Fatalf("listed %+v, %v", list, err)
	}
	lock := saved(t, m, "s-new") // which the list has missed
	defer func() {
		if err := lock.Release(); err != nil {
			t.Error(err)
		}
	}()
	if !f.asked() {
		t.Error("there is no other look")
	}
	f.look(true)
	if len(h.seen) != 1 || len(h.gone) != 1 {
		t.Fatalf("told of %d and the end of %d", len(h.seen), len(h.gone))
	}
	if s, id := <-h.seen, <-h.gone; s.ID != "s-new" || id != "s-gone" {
		t.Errorf("told %+v and the end of %s", s, id)
	}
	if *f.told["s-own"] != *of("s-own") {
		t.Error("its own is taken for one that was missed")
	}
	if list, err := m.List(t.Context(), Filter{State: StateClosed}); err != nil || len(list) != 0 || f.asked() {
		t.Errorf("a list of which nothing is missed, %+v, %v, has another look", list, err)
	}
}

// A service does not take itself for the other one that has a session, when it gives that
// up or takes it in the moment in which it is looked.
func TestOwnerIsAnother(t *testing.T) {
	m := following(t, new(heard))
	for name, test := range map[string]struct {
		before, while bool // it is this service's
		want          int
	}{
		"given up just now": {true, false, 0},
		"taken just now":    {false, true, 0},
		"another's":         {false, false, os.Getpid()},
	} {
		release := func() {}
		take := func() {
			var err error
			if release, err = m.claim(t.Context(), "s-a"); err != nil {
				t.Fatal(err)
			}
		}
		if test.before {
			take()
		}
		got := m.otherOwner("s-a", func(string) (int, error) {
			if test.before {
				release()
			}
			if test.while {
				take()
			}
			return os.Getpid(), nil
		})
		if test.while {
			release()
		}
		if got != test.want {
			t.Errorf("%s: its owner is %d, want %d", name, got, test.want)
		}
	}
}

// That it cannot be seen who has a session is told once, and again when it could be seen
// meanwhile.
func TestUnclearOwnerIsToldOnce(t *testing.T) {
	var told bytes.Buffer
	m := following(t, new(heard))
	m.log = slog.New(slog.NewTextHandler(&told, nil))
	broken := errors.New("broken")
	for i, err := range []error{broken, broken, nil, broken} {
		for _, id := range []string{"s-a", "s-b"} {
			m.otherOwner(id, func(string) (int, error) { return 0, err })
		}
		if n, want := strings.Count(told.String(), "level=WARN"), []int{2, 2, 2, 4}[i]; n != want {
			t.Errorf("after %d looks it was told %d times, want %d", i+1, n, want)
		}
	}
	for i := range 2 * maxOwnerless {
		m.follow.unclear(fmt.Sprint(i), broken)
	}
	if n := len(m.follow.ownerless); n > maxOwnerless {
		t.Errorf("%d are remembered", n)
	}
}

// A session that this service is just taking or leaving is looked at when it has, and not
// all the while.
func TestPassingIsLookedAtLater(t *testing.T) {
	m := following(t, new(heard))
	f := m.follow
	f.told = map[string]*aspect{}
	for _, passes := range []bool{true, false} {
		release, err := m.claim(t.Context(), "s-a")
		if err != nil {
			t.Fatal(err)
		}
		if passes {
			f.put("s-a", nil, func() { t.Error("it was told") })
		}
		if f.asked() {
			t.Error("there is a look while it is taken")
		}
		release()
		if f.asked() != passes {
			t.Errorf("afterwards there is a look: %t, want %t", !passes, passes)
		}
	}
}

// Where the system gives no watch, it is looked all the time, and as seldom as a look is
// slow.
func TestFollowUnwatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heard{takes: time.Second}
		m := following(t, h)
		m.follow.newWatcher = func() (*fsnotify.Watcher, error) { return nil, errors.New("no more watches") }
		m.Follow()
		a := saved(t, m, "s-a")
		if s := <-h.seen; s.ID != "s-a" || s.HeldBy != os.Getpid() {
			t.Errorf("seen %+v", s)
		}
		looked := time.Now()
		b := saved(t, m, "s-b")
		if s := <-h.seen; s.ID != "s-b" {
			t.Errorf("seen %+v", s)
		}
		if after := time.Since(looked); after < lookShare*time.Second {
			t.Errorf("after a look of 1s the next one began after %v", after-h.takes)
		}
		if err := errors.Join(a.Release(), b.Release()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if s := <-h.seen; s.HeldBy != 0 {
				t.Errorf("seen %+v", s)
			}
		}
		if _, err := m.o.Artifacts.Publish(t.Context(), artifacts.PublishRequest{SessionID: "s-1", Name: "a", Size: 1}, strings.NewReader("a")); err != nil {
			t.Fatal(err)
		}
		<-h.artifacts
		time.Sleep(time.Hour) // of the test's own clock
		if len(h.artifacts) > 0 || len(h.seen) > 0 {
			t.Errorf("%d and %d changes more were told", len(h.artifacts), len(h.seen))
		}
	})
}

// A binding that is as it was is not read again; who has the session is seen all the same.
func TestUnchangedBindingIsNotRead(t *testing.T) {
	h := new(heard)
	m := following(t, h)
	f := m.follow
	f.told = map[string]*aspect{}
	if err := saved(t, m, "s-a").Release(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(m.o.StateDir, "sessions", "s-a", "binding.json")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-time.Hour)
	write := func(text []byte, at time.Time) { // in place
		t.Helper()
		if err := errors.Join(os.WriteFile(file, text, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	told := func(want ...State) {
		t.Helper()
		f.look(true)
		for _, state := range want {
			if s := <-h.seen; s.State != state {
				t.Errorf("told %+v, want %s", s, state)
			}
		}
		if len(h.seen) > 0 {
			t.Errorf("told %+v", <-h.seen)
		}
	}
	write(good, long)
	told(StateBound)
	write(bytes.Repeat([]byte("x"), len(good)), long)
	told()
	write(good, long)
	lock, err := m.store.LockSession(t.Context(), "s-a")
	if err != nil {
		t.Fatal(err)
	}
	told(StateBound)
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	told(StateBound)
	write([]byte("x"), long)
	told(StateFailed)
	write(good, long)
	told(StateBound)
	write(bytes.Repeat([]byte("x"), len(good)), long.Add(time.Second))
	told(StateFailed)
}
