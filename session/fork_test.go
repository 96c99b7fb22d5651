package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// fork forks a session that must fork.
func (s *service) fork(r session.ForkRequest) session.Session {
	s.t.Helper()
	v, err := s.Fork(s.t.Context(), r, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// A fork has the profile that its parent was bound to, whatever the file says
// now, and an environment of its own, in which nothing is.
func TestFork(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{
		Workspace: r.folder, Profile: "kept", Labels: map[string]string{"chat": "7"},
		Constraints: session.Constraints{Timeout: time.Second, Memory: 16 << 20},
	})
	s.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	for _, config := range []string{
		strings.ReplaceAll(defaultConfig, `"image": "a"`, `"image": "another"`),
		`{"execution_environments": {"profiles": {}}}`,
		`{"torn`,
	} {
		r.write(r.config, config)
		var steps []string
		f, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, func(step string) { steps = append(steps, step) })
		if err != nil {
			t.Fatal(err)
		}
		if f.ID == v.ID || f.ParentID != v.ID || f.Profile != "kept" || f.State != session.StateReady ||
			f.EnvironmentID == v.EnvironmentID || f.Workspace != v.Workspace || f.Labels["chat"] != "7" || len(steps) == 0 {
			t.Errorf("forked %+v, steps %q", f, steps)
		}
		b := s.env(f).b
		if b.Profile.Image != "a" || b.Profile.Timeout != time.Second || b.Profile.Memory != 16<<20 || b.Provisioned || b.WorkspaceFolder != r.folder {
			t.Errorf("binding %+v", b)
		}
		if b.Secrets.Token == s.env(v).b.Secrets.Token {
			t.Error("it has its parent's token")
		}
		if res := s.call(f.ID, "read_file", `{"path":"a"}`); !res.IsError {
			t.Errorf("it has its parent's files: %+v", res)
		}
		want := []session.State{session.StateBound, session.StateConnecting, session.StateReady}
		if got := s.sink.statesOf(f.ID); !slices.Equal(got, want) {
			t.Errorf("states %v", got)
		}
	}
	if got, err := s.Get(t.Context(), v.ID); err != nil || got.State != session.StateReady || got.ParentID != "" {
		t.Errorf("the parent is now %+v, %v", got, err)
	}
}

// A fork is a session like every other: it outlives its parent and is resumed.
func TestForkOutlivesItsParent(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	f := s.fork(session.ForkRequest{SessionID: v.ID, NewSessionID: "mine"})
	s.call(f.ID, "write_file", `{"path":"a","content":"its own"}`)
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = r.start()
	got := s.open(session.OpenRequest{SessionID: "mine"})
	if got.ParentID != v.ID || got.EnvironmentID != f.EnvironmentID {
		t.Errorf("resumed %+v", got)
	}
	if res := s.call("mine", "read_file", `{"path":"a"}`); res.IsError {
		t.Errorf("its file is gone: %+v", res)
	}
	// One that is not open, or closed, is forked all the same.
	if _, err := s.Close(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	if g := s.fork(session.ForkRequest{SessionID: "mine"}); g.ParentID != "mine" || g.State != session.StateReady {
		t.Errorf("forked %+v", g)
	}
}

// The session that is forked may belong to another service.
func TestForkOfAnotherServices(t *testing.T) {
	r := newRig(t)
	one, two := r.start(), r.start()
	v := one.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	if f := two.fork(session.ForkRequest{SessionID: v.ID}); f.ParentID != v.ID {
		t.Errorf("forked %+v", f)
	}
	_, err := two.Fork(t.Context(), session.ForkRequest{SessionID: v.ID, NewSessionID: v.ID}, nil)
	wantKind(t, err, tool.SessionBusy)
	one.call(v.ID, "request", "{}")
}

func TestForkRefused(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	other := s.open(session.OpenRequest{SessionID: "other", Workspace: r.folder, Profile: "box", Deferred: true})
	folder := t.TempDir()
	moved := s.open(session.OpenRequest{Workspace: folder, Profile: "box"})
	if err := os.Rename(folder, folder+"-moved"); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		ask  session.ForkRequest
		kind tool.Kind
	}{
		{"no such session", session.ForkRequest{SessionID: "none"}, tool.SessionNotFound},
		{"no session's id", session.ForkRequest{SessionID: "../x"}, tool.SessionNotFound},
		{"a bad new id", session.ForkRequest{SessionID: v.ID, NewSessionID: "../x"}, tool.InvalidParams},
		{"itself", session.ForkRequest{SessionID: v.ID, NewSessionID: v.ID}, tool.InvalidParams},
		{"one that exists", session.ForkRequest{SessionID: v.ID, NewSessionID: other.ID}, tool.InvalidParams},
		{"a folder that is gone", session.ForkRequest{SessionID: moved.ID}, tool.InvalidParams},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := s.Fork(t.Context(), tt.ask, nil)
			wantKind(t, err, tt.kind)
		})
	}
	if list, err := s.List(t.Context(), session.Filter{}); err != nil || len(list) != 3 {
		t.Errorf("sessions %v, %v", list, err)
	}
	// An environment that cannot be made leaves no session.
	r.world.set(func() { r.world.fail = []error{tool.Errorf(tool.BackendUnavailable, "no daemon")} })
	_, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID, NewSessionID: "late"}, nil)
	wantKind(t, err, tool.BackendUnavailable)
	_, err = s.Get(t.Context(), "late")
	wantKind(t, err, tool.SessionNotFound)
	s.stop()
	entries, err := os.ReadDir(filepath.Join(r.dir, "state", "environments"))
	if err != nil || len(entries) != 2 {
		t.Errorf("environments %v, %v", entries, err)
	}
}

// A fork of a shared profile is in its parent's environment.
func TestForkShared(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	s.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	// An edit gives new sessions another environment, and forks the same.
	r.write(r.config, strings.ReplaceAll(defaultConfig, `"image": "a"`, `"image": "another"`))
	f := s.fork(session.ForkRequest{SessionID: v.ID})
	if f.EnvironmentID != v.EnvironmentID || !f.Shared || f.ParentID != v.ID {
		t.Fatalf("forked %+v", f)
	}
	if res := s.call(f.ID, "read_file", `{"path":"a"}`); res.IsError {
		t.Errorf("it does not see its parent's files: %+v", res)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil || !r.world.has(v.EnvironmentID) {
		t.Errorf("with the parent's end: there %t, %v", r.world.has(v.EnvironmentID), err)
	}
	if _, err := s.Close(t.Context(), f.ID); err != nil || r.world.has(v.EnvironmentID) {
		t.Errorf("with the last one's end: there %t, %v", r.world.has(v.EnvironmentID), err)
	}
	// What its parent lost is lost to a fork.
	_, err := s.Fork(t.Context(), session.ForkRequest{SessionID: f.ID, NewSessionID: "late"}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	_, err = s.Get(t.Context(), "late")
	wantKind(t, err, tool.SessionNotFound)
	if r.world.has(v.EnvironmentID) {
		t.Error("an empty environment was made in its place")
	}
}

// While parents come and go in two services no fork ever finds an empty
// environment: it has the parent's files, or does not come to be.
func TestForkBesideDelete(t *testing.T) {
	r := newRig(t)
	one, two := r.start(), r.start()
	for range 30 {
		v := one.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
		one.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
		var both sync.WaitGroup
		both.Go(func() {
			if _, err := one.Delete(t.Context(), v.ID, false); err != nil {
				t.Error(err)
			}
		})
		both.Go(func() {
			f, err := two.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
			var e *tool.Error
			if errors.As(err, &e) && (e.Kind == tool.SessionNotFound || e.Kind == tool.EnvironmentLost) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if res := two.call(f.ID, "read_file", `{"path":"a"}`); res.IsError {
				t.Error("the fork is in an empty environment")
			}
			if _, err := two.Delete(t.Context(), f.ID, false); err != nil {
				t.Error(err)
			}
		})
		both.Wait()
		if r.world.has(v.EnvironmentID) {
			t.Fatal("it is there after the last one's end")
		}
	}
	for _, dir := range []string{"sessions", "environments"} {
		if entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir)); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
}
