package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/profile"
)

// holderVariable makes this test binary a process that holds a lock.
const holderVariable = "CAISSON_TEST_HOLD"

func TestMain(m *testing.M) {
	if arg := os.Getenv(holderVariable); arg != "" {
		hold(arg)
		return
	}
	goleak.VerifyTestMain(m)
}

// hold locks the session of the store, says so, and waits for its end.
func hold(arg string) {
	dir, id, _ := strings.Cut(arg, "|")
	s, err := Open(dir, slog.New(slog.DiscardHandler))
	if err == nil {
		_, err = s.LockSession(context.Background(), id)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	if _, err := bufio.NewReader(os.Stdin).ReadByte(); err != nil { // until it is killed or told
		os.Exit(1)
	}
}

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "state"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const identity = "caisson-0123456789abcdef0123456789abcdef"

func session(id string) Session {
	return Session{
		ID: id, Workspace: "file:///w", Folder: "/w", Place: Place{Profile: profile.BuiltIn(profile.Defaults{}), Environment: identity},
		Labels: map[string]string{"a": "b"}, CreatedAt: time.Unix(1, 0).UTC(), LastUsedAt: time.Unix(2, 0).UTC(),
	}
}

// save saves a session as its owner does.
func save(t *testing.T, s *Store, b Session) {
	t.Helper()
	l, err := s.LockSession(t.Context(), b.ID)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Save(b), l.Release()); err != nil {
		t.Fatal(err)
	}
}

func TestSessions(t *testing.T) {
	s := open(t)
	if _, err := s.Load("a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown session: %v", err)
	}
	b := session("a")
	save(t, s, b)
	got, err := s.Load("a")
	b.Format = format
	if err != nil || !reflect.DeepEqual(got, b) {
		t.Errorf("got %+v, %v", got, err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].ID != "a" || list[0].Err != nil {
		t.Errorf("list %+v, %v", list, err)
	}
	token, err := s.Token("a")
	if err != nil || len(token) != 64 {
		t.Errorf("token %q, %v", token, err)
	}
	if again, err := s.Token("a"); err != nil || again != token {
		t.Errorf("another token: %v", err)
	}
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Forget("a"), l.Release()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.session("a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is still there: %v", err)
	}
}

func TestModes(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	if _, err := s.Token("a"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Describe(Environment{Identity: identity}); err != nil {
		t.Fatal(err)
	}
	if err := s.MarkProvisioned(identity, true); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(s.dir, func(path string, info os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenClosesADirectoryToOthers(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestStoreID(t *testing.T) {
	s := open(t)
	again, err := Open(s.dir, slog.New(slog.DiscardHandler))
	if err != nil || len(s.ID()) != 32 || again.ID() != s.ID() {
		t.Errorf("%q and then %q, %v", s.ID(), again.ID(), err)
	}
	if other := open(t); other.ID() == s.ID() {
		t.Error("two stores have one id")
	}
	var broken *BrokenError
	if err := os.WriteFile(filepath.Join(s.dir, "store.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.dir, slog.New(slog.DiscardHandler)); !errors.As(err, &broken) {
		t.Errorf("a torn id: %v", err)
	}
}

// What is not the store's own work is reported and left as it is.
func TestBroken(t *testing.T) {
	for name, content := range map[string]string{
		"empty":               "",
		"torn":                `{"format": 1, "id": "a", "envir`,
		"another format":      `{"format": 99, "id": "a", "environment": "` + identity + `"}`,
		"another session":     `{"format": 1, "id": "b", "environment": "` + identity + `"}`,
		"a path for identity": `{"format": 1, "id": "a", "environment": "../../x"}`,
		"foreign":             "#!/bin/sh\n",
		"huge":                strings.Repeat(" ", maxRecord+1),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			save(t, s, session("a"))
			file := s.session("a", "binding.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var broken *BrokenError
			if _, err := s.Load("a"); !errors.As(err, &broken) || broken.File != file {
				t.Errorf("got %v", err)
			}
			if list, err := s.List(); err != nil || len(list) != 1 || list[0].Err == nil {
				t.Errorf("list %+v, %v", list, err)
			}
			if raw, err := os.ReadFile(file); err != nil || string(raw) != content {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	t.Run("token", func(t *testing.T) {
		s := open(t)
		save(t, s, session("a"))
		if err := os.WriteFile(s.session("a", "token"), []byte("short"), 0o600); err != nil {
			t.Fatal(err)
		}
		var broken *BrokenError
		if _, err := s.Token("a"); !errors.As(err, &broken) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("environment", func(t *testing.T) {
		s := open(t)
		if _, err := s.Describe(Environment{Identity: identity}); err != nil {
			t.Fatal(err)
		}
		file := s.environment(identity, "environment.json")
		if err := os.WriteFile(file, []byte(`{"format":1,"identity":"other"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		var broken *BrokenError
		if _, err := s.Describe(Environment{Identity: identity}); !errors.As(err, &broken) {
			t.Errorf("got %v", err)
		}
	})
}

// A crash in the middle of a replacement leaves the old binding, and a file
// that is nobody's.
func TestCrashDuringReplacement(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	if err := os.WriteFile(s.session("a", "binding.json.tmp-1"), []byte(`{"format"`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load("a"); err != nil {
		t.Error(err)
	}
	// What is left of a removal goes with the next start, and so does what a
	// service leaves that was killed before it had saved the first binding.
	half, err := s.LockSession(t.Context(), "half")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(s.session("half", "binding.json.tmp-1"), nil, 0o600), half.Release()); err != nil {
		t.Fatal(err)
	}
	making, err := s.LockSession(t.Context(), "making")
	if err != nil {
		t.Fatal(err)
	}
	defer making.Release()
	left := filepath.Join(s.environments(), removedPrefix+"x")
	if err := os.MkdirAll(filepath.Join(left, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(s.dir, slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
	for _, gone := range []string{left, s.session("half")} {
		if _, err := os.Stat(gone); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
	if _, err := os.Stat(s.session("making", "lock")); err != nil {
		t.Errorf("the session that is being made: %v", err)
	}
	// And a crash before the first binding is no session at all.
	l, err := s.LockSession(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("list %+v, %v", list, err)
	}
}

func TestIDs(t *testing.T) {
	s := open(t)
	for _, id := range []string{"", ".", "..", "a/b", `a\b`, "-a", "ä", "a b", strings.Repeat("x", 65), "a:b"} {
		if _, err := s.LockSession(t.Context(), id); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := s.Load(id); !errors.Is(err, ErrID) {
			t.Errorf("%q: %v", id, err)
		}
	}
	if err := CheckID(NewID()); err != nil {
		t.Error(err)
	}
}

func TestEnvironments(t *testing.T) {
	s := open(t)
	if is, err := s.Provisioned(identity); is || err != nil {
		t.Errorf("%t, %v", is, err)
	}
	for range 2 {
		if _, err := s.Describe(Environment{Identity: identity, Backend: "docker"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []bool{true, true, false, false} {
		if err := s.MarkProvisioned(identity, want); err != nil {
			t.Fatal(err)
		}
		if is, err := s.Provisioned(identity); is != want || err != nil {
			t.Errorf("%t, %v", is, err)
		}
	}
	if list, err := s.Environments(); err != nil || !reflect.DeepEqual(list, []string{identity}) {
		t.Errorf("%v, %v", list, err)
	}
	if err := s.RemoveEnvironment(identity); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Environments(); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestOperations(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	if _, err := s.Operation("a", "../x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
	o := Operation{ID: "../x", Parameters: "p", At: time.Unix(1, 0).UTC()}
	if err := s.SaveOperation("a", o); err != nil {
		t.Fatal(err)
	}
	o.Process = "p-1"
	if err := s.SaveOperation("a", o); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Operation("a", "../x"); err != nil || got != o {
		t.Errorf("got %+v, %v", got, err)
	}
	if err := errors.Join(s.ForgetOperation("a", "../x"), s.ForgetOperation("a", "../x")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Operation("a", "../x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestOperationsAreBounded(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	dir := s.session("a", "operations")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxOperations {
		file := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Time{}, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.SaveOperation("a", Operation{ID: "new"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != maxOperations {
		t.Fatalf("%d operations, %v", len(entries), err)
	}
	if _, err := os.Stat(filepath.Join(dir, "0")); !errors.Is(err, os.ErrNotExist) {
		t.Error("the oldest was kept")
	}
}

func TestLocks(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var busy *BusyError
	if _, err := s.LockSession(t.Context(), "a"); !errors.As(err, &busy) || busy.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	l, err = s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

// Whoever makes a session does not take somebody who sweeps its empty directory in
// this moment, or who is removing its predecessor, for its owner.
func TestLockWithoutBindingIsWaitedFor(t *testing.T) {
	s := open(t)
	sweeper, err := lock(s.session("a"))
	if err != nil {
		t.Fatal(err)
	}
	type result struct {
		l   *Lock
		err error
	}
	got := make(chan result, 1)
	go func() {
		l, err := s.LockSession(t.Context(), "a")
		got <- result{l, err}
	}()
	select {
	case r := <-got:
		t.Fatalf("somebody without a binding is the owner: %v", r.err)
	case <-time.After(5 * lockPoll):
	}
	if err := errors.Join(removeLocked(s.session("a")), sweeper.Release()); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if r.err != nil {
		t.Fatal(r.err)
	}
	if err := errors.Join(s.Save(session("a")), r.l.Release()); err != nil {
		t.Error(err)
	}
}

// The lock of another process is named by its pid, and is free when the
// process is dead, however it died.
func TestLockOfAnotherProcess(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), holderVariable+"="+s.dir+"|a")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "held\n" {
		t.Fatalf("%q, %v", line, err)
	}
	var busy *BusyError
	if _, err := s.LockSession(t.Context(), "a"); !errors.As(err, &busy) || busy.PID != cmd.Process.Pid {
		t.Errorf("got %v, not the pid %d", err, cmd.Process.Pid)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatalf("a dead owner keeps its lock: %v", err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLockEnvironmentWaits(t *testing.T) {
	s := open(t)
	l, err := s.LockEnvironment(t.Context(), identity)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error)
	go func() {
		second, err := s.LockEnvironment(t.Context(), identity)
		if err == nil {
			err = second.Release()
		}
		got <- err
	}()
	// Its directory may go while the other waits: then it gets the new one's.
	if err := errors.Join(s.RemoveEnvironment(identity), l.Release()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.environment(identity, "lock")); err != nil {
		t.Errorf("the lock was taken on a file that is gone: %v", err)
	}
}

// Owners that remove what they lock never leave two of them: who waited for a
// lock that was removed takes the one that is there.
func TestLocksOfWhatIsRemoved(t *testing.T) {
	s := open(t)
	var holders atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				l, err := s.LockEnvironment(t.Context(), identity)
				if err != nil {
					t.Error(err)
					return
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d hold the lock", n)
				}
				if !current(l.f, s.environment(identity, "lock")) {
					t.Error("the lock is that of a file that is gone")
				}
				holders.Add(-1)
				if err := errors.Join(s.RemoveEnvironment(identity), l.Release()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

func TestWaitingForALockHeedsItsContext(t *testing.T) {
	s := open(t)
	dead := exec.CommandContext(t.Context(), "true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		lock  func(context.Context) (*Lock, error)
		bound bool
		owner int // of the session, unless it is this process
		waits bool
	}{
		{"environment", func(ctx context.Context) (*Lock, error) { return s.LockEnvironment(ctx, identity) }, false, 0, true},
		{"a session that is being made", func(ctx context.Context) (*Lock, error) { return s.LockSession(ctx, "a") }, false, 0, true},
		{"a session that is open", func(ctx context.Context) (*Lock, error) { return s.LockSession(ctx, "b") }, true, 0, false},
		{"a session of a service that was killed", func(ctx context.Context) (*Lock, error) { return s.LockSession(ctx, "c") }, true, dead.Process.Pid, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := tt.lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if tt.bound {
				if err := os.WriteFile(filepath.Join(filepath.Dir(l.f.Name()), "binding.json"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if tt.owner != 0 {
				if err := os.WriteFile(l.f.Name(), []byte(strconv.Itoa(tt.owner)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			var busy *BusyError
			if _, err := tt.lock(ctx); !errors.As(err, &busy) || errors.Is(err, context.Canceled) != tt.waits {
				t.Errorf("got %v", err)
			}
			if err := l.Release(); err != nil {
				t.Error(err)
			}
		})
	}
}
