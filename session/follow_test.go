package session_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/session"
)

// lastSeen is what was told last of a session of another service.
func (r *recorder) lastSeen(id string) (session.Session, bool) {
	for _, s := range slices.Backward(r.seen) {
		if s.ID == id {
			return s, true
		}
	}
	return session.Session{}, false
}

// seesLast waits until the session was told last as the condition wants it.
func (s *service) seesLast(t *testing.T, what, id string, condition func(session.Session) bool) {
	t.Helper()
	s.sink.until(t, what, func() bool {
		last, ok := s.sink.lastSeen(id)
		return ok && condition(last)
	})
}

// A service that follows is told what others do with their sessions, and who they are.
func TestFollow(t *testing.T) {
	r := newRig(t)
	other := r.start()
	kept := other.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s := r.start()
	s.Follow()
	s.Follow() // again is nothing
	own := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})

	list, err := s.List(t.Context(), session.Filter{})
	if err != nil || len(list) != 2 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	for _, v := range list {
		want := map[string]int{kept.ID: os.Getpid(), own.ID: 0}[v.ID]
		if got, err := s.Get(t.Context(), v.ID); v.HeldBy != want || err != nil || got.HeldBy != want {
			t.Errorf("%s is held by %d and %d, %v, want %d", v.Profile, v.HeldBy, got.HeldBy, err, want)
		}
	}

	v := other.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Deferred: true})
	s.seesLast(t, "a session of the other", v.ID, func(v session.Session) bool { return v.HeldBy == os.Getpid() })
	if _, err := other.Close(t.Context(), kept.ID); err != nil {
		t.Fatal(err)
	}
	s.seesLast(t, "its close", kept.ID, func(v session.Session) bool { return v.State == session.StateClosed && v.HeldBy == 0 })
	if _, err := other.Delete(t.Context(), kept.ID, false); err != nil {
		t.Fatal(err)
	}
	s.sink.until(t, "its end", func() bool { return slices.Contains(s.sink.removed, kept.ID) })
	if _, err := other.store.Publish(t.Context(), artifacts.PublishRequest{SessionID: "s-1", Name: "a.txt", Size: 1}, strings.NewReader("a")); err != nil {
		t.Fatal(err)
	}
	s.sink.until(t, "an artifact of the other", func() bool { return s.sink.relisted > 0 })
	other.stop()
	s.seesLast(t, "the other's end", v.ID, func(v session.Session) bool { return v.HeldBy == 0 && v.State == session.StateBound })

	// Of its own sessions it tells itself, and once.
	if _, err := s.Delete(t.Context(), own.ID, false); err != nil {
		t.Fatal(err)
	}
	s.sink.until(t, "the end of its own", func() bool { return slices.Contains(s.sink.removed, own.ID) })
	s.sink.record(func() {
		if last, ok := s.sink.lastSeen(own.ID); ok {
			t.Errorf("its own session was seen as another's: %+v", last)
		}
	})
}

// holderVariable makes the test program a service that has a session until it is killed.
const holderVariable = "CAISSON_TEST_HOLDER"

// A service that is killed can tell nobody, and is found out.
func TestFollowKilled(t *testing.T) {
	if dir := os.Getenv(holderVariable); dir != "" {
		r := newRig(t)
		r.dir = dir
		r.start().open(session.OpenRequest{SessionID: "s-held", Profile: "box", Deferred: true})
		os.Stdout.WriteString("held\n")
		select {}
	}
	r := newRig(t)
	s := r.start()
	s.Follow()
	temp := t.TempDir() // what one that is killed leaves
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFollowKilled$")
	cmd.Env = append(os.Environ(), holderVariable+"="+r.dir, "TMPDIR="+temp, "TMP="+temp, "TEMP="+temp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.seesLast(t, "the session", "s-held", func(v session.Session) bool { return v.HeldBy == cmd.Process.Pid })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	s.seesLast(t, "its loss", "s-held", func(v session.Session) bool { return v.HeldBy == 0 })
	lock := filepath.Join(r.dir, "state", "sessions", "s-held", "lock")
	if raw, err := os.ReadFile(lock); err != nil || strings.Contains(string(raw), strconv.Itoa(cmd.Process.Pid)) {
		t.Errorf("its lock says %q, %v", raw, err)
	}
}
