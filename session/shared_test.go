package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// Two services work in one shared environment at once: each session has a
// connection, a token and processes of its own, and both see the files.
func TestSharedByTwoServices(t *testing.T) {
	r := newRig(t)
	one, two := r.start(), r.start()
	v := one.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	w := two.open(session.OpenRequest{Workspace: t.TempDir(), Profile: "shared"})
	if v.EnvironmentID != w.EnvironmentID || !v.Shared || !w.Shared {
		t.Fatalf("%+v\n%+v", v, w)
	}
	if a, b := one.env(v).b, two.env(w).b; a.Secrets.Token == b.Secrets.Token || a.Session == b.Session || !b.Provisioned {
		t.Errorf("bindings %+v\n%+v", a, b)
	}
	one.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	if res := two.call(w.ID, "read_file", `{"path":"a"}`); res.IsError {
		t.Errorf("%+v", res)
	}
	p := one.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	if list, err := two.ListProcesses(t.Context(), w.ID); err != nil || len(list) != 0 {
		t.Errorf("the other lists %v, %v", list, err)
	}
	for what, err := range map[string]error{
		"get":    second(two.GetProcess(t.Context(), w.ID, p.ID)),
		"read":   second(two.ReadProcess(t.Context(), w.ID, p.ID, session.ReadProcess{})),
		"write":  second(two.WriteProcess(t.Context(), w.ID, p.ID, nil)),
		"signal": second(two.SignalProcess(t.Context(), w.ID, p.ID, "INT")),
		"stop":   second(two.StopProcess(t.Context(), w.ID, p.ID)),
	} {
		if tool.KindOf(err) != tool.ProcessNotFound {
			t.Errorf("%s of the other's process: %v", what, err)
		}
	}
	// Neither service may take the other's session.
	_, _, err := two.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.SessionBusy)
	_, err = two.Delete(t.Context(), v.ID, true)
	wantKind(t, err, tool.SessionBusy)

	if _, err := two.Close(t.Context(), w.ID); err != nil || !r.world.has(v.EnvironmentID) {
		t.Fatalf("there %t, %v", r.world.has(v.EnvironmentID), err)
	}
	if got, err := one.GetProcess(t.Context(), v.ID, p.ID); err != nil || got.Status != session.ProcessRunning {
		t.Errorf("the other's end ended the process: %+v, %v", got, err)
	}
	if _, err := one.Close(t.Context(), v.ID); err != nil || r.world.has(v.EnvironmentID) {
		t.Errorf("there %t, %v", r.world.has(v.EnvironmentID), err)
	}
}

func second[T any](_ T, err error) error { return err }

// A session that was closed while others kept its environment, which then went
// with the last of them, is lost: neither an empty environment nor the next one
// of that identity passes for its own.
func TestSharedIsNeverReplaced(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	s.call(v.ID, "write_file", `{"path":"a","content":"b"}`)
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	// It can come back as long as the other keeps its files.
	s.open(session.OpenRequest{SessionID: v.ID})
	if res := s.call(v.ID, "read_file", `{"path":"a"}`); res.IsError {
		t.Errorf("%+v", res)
	}
	for _, id := range []string{v.ID, w.ID} {
		if _, err := s.Close(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	lost := func(when string) {
		t.Helper()
		_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
		if tool.KindOf(err) != tool.EnvironmentLost {
			t.Errorf("%s: %v", when, err)
		}
	}
	lost("after the last close")
	if r.world.has(v.EnvironmentID) {
		t.Error("an empty environment was made")
	}
	next := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	if next.EnvironmentID != v.EnvironmentID {
		t.Error("another identity")
	}
	lost("beside its successor")
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Error(err)
	}
	s.call(next.ID, "request", "{}")
	if _, err := s.Close(t.Context(), next.ID); err != nil || r.world.has(v.EnvironmentID) {
		t.Errorf("a lost session keeps the environment: there %t, %v", r.world.has(v.EnvironmentID), err)
	}
}

// After its idle limit a shared environment is lost to those who were in it, and
// made anew for those who were not. A persistent one is lost to all.
func TestSharedAfterTheIdleLimit(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	never := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared", Deferred: true})
	kept := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
	s.stop()
	r.world.destroy(v.EnvironmentID)
	r.world.destroy(kept.EnvironmentID)
	s = r.start()
	lost := func(ask session.OpenRequest) {
		t.Helper()
		_, _, err := s.Open(t.Context(), ask, nil)
		wantKind(t, err, tool.EnvironmentLost)
	}
	lost(session.OpenRequest{SessionID: v.ID})
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "shared"})
	if w.EnvironmentID != v.EnvironmentID || w.State != session.StateReady {
		t.Errorf("new %+v", w)
	}
	lost(session.OpenRequest{SessionID: v.ID})
	if got := s.open(session.OpenRequest{SessionID: never.ID}); got.State != session.StateReady {
		t.Errorf("one that was never in it: %+v", got)
	}
	_, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
	wantKind(t, err, tool.EnvironmentLost)
	s.fork(session.ForkRequest{SessionID: w.ID})

	lost(session.OpenRequest{SessionID: kept.ID})
	lost(session.OpenRequest{Workspace: r.folder, Profile: "both"})
	if r.world.has(kept.EnvironmentID) {
		t.Error("a persistent environment was made anew")
	}
}

// A new session whose opening fails takes a shared environment along whose last
// other session went meanwhile, and only then.
func TestFailedOpeningOfShared(t *testing.T) {
	for name, alone := range map[string]bool{"alone": true, "with another": false} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			r.world.set(func() {
				r.world.block, r.world.entered = make(chan struct{}), make(chan struct{}, 10)
				r.world.fail = []error{tool.Errorf(tool.BackendUnavailable, "no worker")}
			})
			done := make(chan error)
			go func() {
				_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: "new", Workspace: r.folder, Profile: "both"}, nil)
				done <- err
			}()
			<-r.world.entered
			deleted := make(chan error, 1)
			if alone {
				// It waits for the opening, and sees a session that is bound.
				go func() { deleted <- second(s.Delete(t.Context(), v.ID, false)) }()
			} else {
				deleted <- nil
			}
			close(r.world.block)
			wantKind(t, <-done, tool.BackendUnavailable)
			if err := <-deleted; err != nil {
				t.Error(err)
			}
			if r.world.has(v.EnvironmentID) == alone {
				t.Errorf("there: %t", !alone)
			}
		})
	}
}

// Sessions of two services that come and go at once leave nothing, and each of
// them always finds the file that all of them write.
func TestSharedComingAndGoing(t *testing.T) {
	r := newRig(t)
	services := []*service{r.start(), r.start()}
	var all sync.WaitGroup
	for i := range 8 {
		s := services[i%2]
		all.Go(func() {
			for range 10 {
				v, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "shared"}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "write_file", Arguments: []byte(`{"path":"a","content":"b"}`)})
				res, readErr := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "read_file", Arguments: []byte(`{"path":"a"}`)})
				if err := errors.Join(err, readErr); err != nil || res.IsError {
					t.Errorf("%v, %+v", err, res)
				}
				if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if len(r.world.places) != 0 {
		t.Errorf("left: %v", r.world.places)
	}
	for _, dir := range []string{"sessions", "environments"} {
		if entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir)); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
}
