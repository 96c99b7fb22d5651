package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// What cannot be ended in order because the environment's disk is full is ended by its
// removal, which makes room. One that stays is not passed for ended.
func TestEndOnFullDisk(t *testing.T) {
	r := newRig(t)
	s := r.start()
	full := tool.Errorf(tool.Internal, "write the record: %w", syscall.ENOSPC)
	for name, end := range map[string]func(id string) error{
		"close":  func(id string) error { _, err := s.Close(t.Context(), id); return err },
		"delete": func(id string) error { _, err := s.Delete(t.Context(), id, false); return err },
	} {
		for _, kept := range []bool{false, true} {
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: map[bool]string{false: "box", true: "both"}[kept]})
			if kept {
				s.open(session.OpenRequest{Workspace: r.folder, Profile: "both"})
			}
			r.world.set(func() { r.world.shutdownErr = full })
			if err := end(v.ID); (err == nil) == kept || r.world.has(v.EnvironmentID) != kept {
				t.Errorf("%s, kept %t: %v, there %t", name, kept, err, r.world.has(v.EnvironmentID))
			}
			r.world.set(func() { r.world.shutdownErr = nil })
		}
	}
}

// What is kept, and when it goes: the table of the documentation.
func TestLifetimes(t *testing.T) {
	tests := []struct {
		profile                            string
		stopped, closed, closedLast, wiped bool // whether the environment is there afterwards
	}{
		{"box", true, false, false, false},
		{"kept", true, true, true, false},
		{"shared", true, true, false, false},
		{"both", true, true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.profile, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: tt.profile})
			shared := v.Shared
			var w session.Session
			if shared {
				w = s.open(session.OpenRequest{Workspace: r.folder, Profile: tt.profile})
				if w.EnvironmentID != v.EnvironmentID {
					t.Fatal("they do not share")
				}
			}
			is := func(when string, want bool) {
				t.Helper()
				if got := r.world.has(v.EnvironmentID); got != want {
					t.Errorf("%s it is there: %t", when, got)
				}
			}
			s.stop()
			is("after the service stopped", tt.stopped)
			s = r.start()
			if shared {
				s.open(session.OpenRequest{SessionID: w.ID})
			}
			s.open(session.OpenRequest{SessionID: v.ID})
			p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
			got, err := s.Close(t.Context(), v.ID)
			if err != nil || got.State != session.StateClosed {
				t.Fatalf("close: %+v, %v", got, err)
			}
			is("after close", tt.closed)
			if events := s.sink.eventTypes(p.ID); !slices.Contains(events, session.ProcessExitedEvent) {
				t.Errorf("its process was not stopped: %v", events)
			}
			_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "request"})
			wantKind(t, err, tool.SessionNotFound)
			if list, err := s.List(t.Context(), session.Filter{State: session.StateClosed}); err != nil || len(list) != 1 {
				t.Errorf("list %v, %v", list, err)
			}
			if shared {
				s.call(w.ID, "request", "{}") // the other still works
				if _, err := s.Close(t.Context(), w.ID); err != nil {
					t.Fatal(err)
				}
				is("after the last close", tt.closedLast)
				if _, err := s.Delete(t.Context(), w.ID, false); err != nil {
					t.Fatal(err)
				}
				is("while one is still bound", tt.closedLast)
			}
			if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
				t.Fatal(err)
			}
			is("after delete", tt.wiped)
			for _, dir := range []string{"sessions", "environments"} {
				entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir))
				if err != nil || len(entries) != 0 {
					t.Errorf("%s: %v, %v", dir, entries, err)
				}
			}
		})
	}
}

// A closed session is resumed when what it had was kept, or lies on the host;
// an environment that was removed never becomes an empty one.
func TestResumeAfterClose(t *testing.T) {
	r := newRig(t)
	s := r.start()
	for name, ask := range map[string]session.OpenRequest{
		"persistent": {Workspace: r.folder, Profile: "kept"},
		"mounted":    {Workspace: r.folder, Profile: "mounted"},
		"local":      {Workspace: r.folder, Profile: "local"},
	} {
		v := s.open(ask)
		if _, err := s.Close(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		got, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
		if err != nil || !resumed || got.State != session.StateReady || got.EnvironmentID != v.EnvironmentID {
			t.Errorf("%s: %+v, %t, %v", name, got, resumed, err)
		}
	}
	for name, ask := range map[string]session.OpenRequest{
		"in a container":         {Workspace: r.folder, Profile: "box"},
		"local without a folder": {},
	} {
		v := s.open(ask)
		if _, err := s.Close(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
		t.Run(name, func(t *testing.T) { wantKind(t, err, tool.EnvironmentLost) })
		if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
			t.Error(err)
		}
	}
}

// Sessions of the state directory are closed and deleted without being opened
// first, as the command line does.
func TestCloseUnopened(t *testing.T) {
	r := newRig(t)
	s := r.start()
	box := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	kept := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	deferred := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept", Deferred: true})
	s.launch(session.StartProcess{SessionID: kept.ID, Command: "a"})
	s.stop()
	s = r.start()
	for _, v := range []session.Session{box, kept, deferred} {
		for range 2 { // again is no error
			if got, err := s.Close(t.Context(), v.ID); err != nil || got.State != session.StateClosed {
				t.Errorf("%s: %+v, %v", v.Profile, got, err)
			}
		}
	}
	if r.world.has(box.EnvironmentID) || !r.world.has(kept.EnvironmentID) {
		t.Error("the wrong one was removed")
	}
	for _, p := range s.env(kept).at.processes {
		if !p.Status.Terminal() {
			t.Error("a process of a closed session runs")
		}
	}
	if _, err := s.Delete(t.Context(), kept.ID, false); err != nil {
		t.Error(err)
	}
	if r.world.has(kept.EnvironmentID) {
		t.Error("a deleted session left its environment")
	}
	_, err := s.Close(t.Context(), "none")
	wantKind(t, err, tool.SessionNotFound)
	_, err = s.Delete(t.Context(), "../x", true)
	wantKind(t, err, tool.SessionNotFound)
}

// After an end that failed everything is still there, and it can be tried again.
func TestFailedEnd(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	r.world.shutdownErr = tool.Errorf(tool.Internal, "a process does not end")
	_, err := s.Close(t.Context(), v.ID)
	wantKind(t, err, tool.Internal)
	states := s.sink.statesOf(v.ID)
	if !r.world.has(v.EnvironmentID) || states[len(states)-1] != session.StateFailed {
		t.Errorf("there: %t, states %v", r.world.has(v.EnvironmentID), states)
	}
	r.world.set(func() { r.world.shutdownErr = nil })
	r.world.set(func() { r.world.removeErr = tool.Errorf(tool.BackendUnavailable, "no daemon") })
	_, err = s.Close(t.Context(), v.ID)
	wantKind(t, err, tool.BackendUnavailable)
	_, err = s.Delete(t.Context(), v.ID, false)
	wantKind(t, err, tool.BackendUnavailable)
	left, err := s.Delete(t.Context(), v.ID, true)
	if err != nil || !strings.Contains(left, v.EnvironmentID) || !strings.Contains(left, "no daemon") {
		t.Errorf("left %q, %v", left, err)
	}
	_, err = s.Get(t.Context(), v.ID)
	wantKind(t, err, tool.SessionNotFound)
}

// With force an environment is removed although something in it does not end,
// but never under another session.
func TestForcedDelete(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	one := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	r.world.set(func() { r.world.shutdownErr = tool.Errorf(tool.Internal, "a process does not end") })
	left, err := s.Delete(t.Context(), v.ID, true)
	if err != nil || left != "" || r.world.has(v.EnvironmentID) {
		t.Errorf("left %q, %v; it is there: %t", left, err, r.world.has(v.EnvironmentID))
	}
	r.world.set(func() { r.world.removeErr = tool.Errorf(tool.BackendUnavailable, "no daemon") })
	left, err = s.Delete(t.Context(), one.ID, true)
	if err != nil || !strings.Contains(left, "does not end") || !strings.Contains(left, "no daemon") {
		t.Errorf("left %q, %v", left, err)
	}
}

// A lost environment has nothing left to end.
func TestCloseOfLost(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	r.world.shutdownErr = tool.Errorf(tool.EnvironmentLost, "gone")
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Error(err)
	}
}

func TestPrune(t *testing.T) {
	r := newRig(t)
	s := r.start()
	bound := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	r.world.set(func() {
		r.world.places["caisson-left"] = &place{envs: map[string]*doubleEnvironment{"x": {kind: "docker"}}}
	})
	for _, dry := range []bool{true, false} {
		found, err := s.Prune(t.Context(), session.PruneRequest{DryRun: dry, Backend: "docker"})
		if err != nil || len(found) != 1 || found[0].Environment != "caisson-left" {
			t.Errorf("found %v, %v", found, err)
		}
	}
	if found, err := s.Prune(t.Context(), session.PruneRequest{}); err != nil || len(found) != 0 || !r.world.has(bound.EnvironmentID) {
		t.Errorf("found %v, %v", found, err)
	}
	_, err := s.Prune(t.Context(), session.PruneRequest{Backend: "ssh"})
	wantKind(t, err, tool.Unsupported)
}

// Backends are told what sessions have bound, so that they find what these keep here.
func TestPruneKnowsBindings(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if _, err := s.Prune(t.Context(), session.PruneRequest{DryRun: true}); err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, b := range r.world.pruned.Bound {
		kinds[b.Profile.Backend]++
		if b.Session != v.ID || b.WorkspaceFolder != r.folder || b.Environment == "" || b.Secrets.Token != "" ||
			b.StateDir != filepath.Join(r.dir, "state", "environments", b.Environment, "state") {
			t.Errorf("bound %+v", b)
		}
	}
	if kinds["local"] != 1 || kinds["docker"] != 2 || kinds["wasm"] != 1 {
		t.Errorf("bound %v", kinds)
	}
	// Nothing is made where nothing was opened yet.
	if entries, err := os.ReadDir(filepath.Join(r.dir, "state", "environments")); err != nil || len(entries) != 1 {
		t.Errorf("environments: %v, %v", entries, err)
	}
}

func TestProfiles(t *testing.T) {
	r := newRig(t)
	s := r.start()
	list, def, err := s.Profiles(t.Context())
	if err != nil || def != "local" || len(list) != 9 || list[0].Name != "local" || list[1].Summary != "docker a, network none" || list[1].Problem != nil {
		t.Errorf("got %+v, %q, %v", list, def, err)
	}
	if far := list[8]; far.Name != "far" || tool.KindOf(far.Problem) != tool.Unsupported {
		t.Errorf("got %+v", far)
	}
	r.write(r.config, `{"execution_environments": {"profiles": {"good": {"backend": "docker", "image": "a"}, "bad": {"backend": "docker"}}}}`)
	list, _, err = s.Profiles(t.Context())
	wantKind(t, err, tool.ConfigInvalid)
	if len(list) != 3 || list[1].Problem == nil || !strings.Contains(list[2].Problem.Error(), "bad.image") {
		t.Errorf("got %+v", list)
	}
	_, err = s.CheckProfile(t.Context(), "good")
	wantKind(t, err, tool.ConfigInvalid)
	r.write(r.config, defaultConfig)
	if h, err := s.CheckProfile(t.Context(), "forward"); err != nil || !h.OK {
		t.Errorf("got %+v, %v", h, err)
	}
	r.vars = nil
	if h, err := s.CheckProfile(t.Context(), "forward"); err != nil || h.OK || !strings.Contains(h.Checks[0].Detail, "TOKEN") {
		t.Errorf("got %+v, %v", h, err)
	}
	_, err = s.CheckProfile(t.Context(), "nowhere")
	wantKind(t, err, tool.ProfileNotFound)
}

func TestBackends(t *testing.T) {
	r := newRig(t)
	s := r.start()
	find := func(kind string) session.BackendInfo {
		all := s.Backends(t.Context())
		return all[slices.IndexFunc(all, func(i session.BackendInfo) bool { return i.Kind == kind })]
	}
	if i := find("docker"); !i.Built || !i.Usable {
		t.Errorf("got %+v", i)
	}
	if i := find("modal"); i.Built || i.Usable || i.Detail == "" {
		t.Errorf("got %+v", i)
	}
	r.world.fail = []error{tool.Errorf(tool.BackendUnavailable, "no daemon").WithHint("start it")}
	if i := find("docker"); !i.Built || i.Usable || i.Detail != "no daemon" || i.Hint != "start it" {
		t.Errorf("got %+v", i)
	}
}

// A changed file is told; sessions that exist keep what they are bound to.
func TestConfigChanged(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	changes := func(n int) func() bool { return func() bool { return len(s.sink.configs) == n } }
	r.write(r.config, "{")
	s.sink.until(t, "a broken file", changes(1))
	wantKind(t, s.sink.config(0), tool.ConfigInvalid)
	s.call(v.ID, "request", "{}")
	// Editors replace a file rather than write it.
	next := r.config + ".new"
	r.write(next, defaultConfig)
	if err := os.Rename(next, r.config); err != nil {
		t.Fatal(err)
	}
	s.sink.until(t, "a good file", changes(2))
	if err := s.sink.config(1); err != nil {
		t.Error(err)
	}
	if err := os.Remove(r.config); err != nil {
		t.Fatal(err)
	}
	s.ConfigChanged()
	s.sink.until(t, "no file", changes(3))
	s.open(session.OpenRequest{Workspace: r.folder, Profile: "local"})
}

// A file whose directory is made later is noticed too.
func TestConfigComesLater(t *testing.T) {
	r := newRig(t)
	r.config = filepath.Join(t.TempDir(), "deep", "down", "config.json")
	s := r.start()
	if err := os.MkdirAll(filepath.Dir(r.config), 0o700); err != nil {
		t.Fatal(err)
	}
	r.write(r.config, defaultConfig)
	s.sink.until(t, "the file", func() bool { return len(s.sink.configs) == 1 })
}

// A shutdown ends openings, and returns when its time is over.
func TestShutdownHasABudget(t *testing.T) {
	r := newRig(t)
	r.world.block, r.world.entered = make(chan struct{}), make(chan struct{}, 1)
	s := r.start()
	done := make(chan error)
	go func() {
		_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: "one", Workspace: r.folder, Profile: "box"}, nil)
		done <- err
	}()
	<-r.world.entered
	// An opening ends with the service.
	m := s.Manager
	s.stop()
	if err := <-done; err == nil {
		t.Error("an opening outlived the service")
	}
	_, _, err := m.Open(t.Context(), session.OpenRequest{}, nil)
	wantKind(t, err, tool.Cancelled)

	s = r.start()
	r.world.set(func() { r.world.block, r.world.entered = nil, nil })
	s.open(session.OpenRequest{SessionID: "two", Workspace: r.folder, Profile: "kept"})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Manager = nil
	if err := s.store.Close(); err != nil {
		t.Error(err)
	}
	// Its session is free when all is done.
	other := r.start()
	other.openWhenFree(t, "two")
}

// While the service shuts down, and afterwards, a call on a session that it had
// hears that, and never that there is no such session.
func TestShutdownIsTold(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	s.call(v.ID, "write_file", `{"path":"a","content":"text"}`)
	m := s.Manager
	over := make(chan struct{})
	told := make(chan error)
	go func() {
		defer close(told)
		for {
			last := false
			select {
			case <-over:
				last = true
			default:
			}
			if _, err := m.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "request", Arguments: []byte(`{}`)}); err != nil {
				told <- err
			}
			if _, _, err := m.PublishArtifact(t.Context(), v.ID, "a"); err != nil {
				told <- err
			}
			if last {
				return
			}
		}
	}()
	go func() {
		defer close(over)
		s.stop()
	}()
	count := 0
	for err := range told {
		count++
		wantKind(t, err, tool.Cancelled)
	}
	if count == 0 {
		t.Error("calls go on after the shutdown")
	}
}

// openWhenFree opens the session as soon as its last owner gave it up.
func (s *service) openWhenFree(t *testing.T, id string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, _, err := s.Open(ctx, session.OpenRequest{SessionID: id}, nil)
		if err == nil {
			return
		}
		if tool.KindOf(err) != tool.SessionBusy || ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
