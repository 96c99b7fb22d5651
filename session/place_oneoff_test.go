package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// What only something new can have gives a job an environment of its own, which is
// gone with it.
func TestOneOffEnvironments(t *testing.T) {
	for name, test := range map[string]struct {
		opened string
		c      session.Constraints
		check  func(p profile.Profile) bool
	}{
		"an image":            {"box", session.Constraints{Image: "b"}, func(p profile.Profile) bool { return p.Image == "b" }},
		"memory":              {"box", session.Constraints{Memory: 64 << 20}, func(p profile.Profile) bool { return p.Memory == 64<<20 }},
		"processors":          {"box", session.Constraints{CPUs: 1.5}, func(p profile.Profile) bool { return p.CPUs == 1.5 }},
		"a profile":           {"local", session.Constraints{Profile: "box"}, func(p profile.Profile) bool { return p.Name == "box" }},
		"one that is kept":    {"local", session.Constraints{Profile: "both"}, func(p profile.Profile) bool { return !p.Persistent && !p.Shared }},
		"a profile narrowed":  {"local", session.Constraints{Profile: "box", Memory: 64 << 20}, func(p profile.Profile) bool { return p.Memory == 64<<20 }},
		"the session's image": {"box", session.Constraints{Scope: "jobs", Image: "b"}, func(p profile.Profile) bool { return p.Image == "b" }},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			open, call := session.OpenRequest{Workspace: r.folder, Profile: test.opened}, test.c
			if test.c.Scope != "" {
				open.Constraints, call = test.c, session.Constraints{}
			}
			v := s.open(open)
			ran, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: call})
			if err != nil || !test.check(ran.b.Profile) || ran.b.Environment == v.EnvironmentID {
				t.Fatalf("ran in %+v, %v", ran.b, err)
			}
			if r.world.has(ran.b.Environment) || !r.world.has(v.EnvironmentID) || len(r.environments()) != 1 {
				t.Errorf("left: %v", r.environments())
			}
			tokens, err := filepath.Glob(filepath.Join(r.dir, "state", "sessions", v.ID, "token*"))
			if err != nil || len(tokens) != 1 {
				t.Errorf("tokens: %v, %v", tokens, err)
			}
			s.sink.mu.Lock()
			x := s.sink.started[len(s.sink.started)-1]
			s.sink.mu.Unlock()
			if x.Tool != "shell.job" || x.SessionID != v.ID {
				t.Errorf("event %+v", x)
			}
			// The session itself is what it was.
			if got, err := s.Get(t.Context(), v.ID); err != nil || got.State != session.StateReady || got.EnvironmentID != v.EnvironmentID {
				t.Errorf("the session is %+v, %v", got, err)
			}
		})
	}
}

// A job in the workspace cannot have an environment without it.
func TestOneOffInWorkspace(t *testing.T) {
	r := newRig(t)
	s := r.start()
	box := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	in := backends.JobRequest{CWD: ".", Argv: []string{"true"}}
	_, err := s.job(session.JobRequest{SessionID: box.ID, Job: in, Constraints: session.Constraints{Image: "b"}})
	wantKind(t, err, tool.Unsupported)
	mounted := s.open(session.OpenRequest{Workspace: r.folder, Profile: "mounted"})
	ran, err := s.job(session.JobRequest{SessionID: mounted.ID, Job: in, Constraints: session.Constraints{Image: "b"}})
	if err != nil || ran.b.Profile.HostWorkspace != r.folder {
		t.Errorf("ran in %+v, %v", ran.b, err)
	}
	local := s.open(session.OpenRequest{Workspace: r.folder})
	if _, err := s.job(session.JobRequest{SessionID: local.ID, Job: in, Constraints: session.Constraints{Profile: "mounted"}}); err != nil {
		t.Error(err)
	}
}

// A service that is killed in the middle of a job leaves its environment to whoever
// has the session next.
func TestOneOffIsReaped(t *testing.T) {
	r := newRig(t)
	r.world.waiting = make(chan struct{})
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	run := func() {
		_, err := s.RunJob(ctx, session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"wait"}}, Constraints: session.Constraints{Image: "b"}})
		done <- err
	}
	go run()
	<-r.world.waiting
	binding := filepath.Join(r.dir, "state", "sessions", v.ID, "binding.json")
	saved, err := os.ReadFile(binding)
	if err != nil {
		t.Fatal(err)
	}
	// A job that is cancelled leaves nothing.
	var one string
	r.world.set(func() {
		one = r.world.jobs[0].b.Environment
		r.world.removeErr = tool.Errorf(tool.BackendUnavailable, "no engine")
	})
	cancel()
	wantKind(t, <-done, tool.Cancelled)
	if !r.world.has(one) {
		t.Fatal("the environment was removed without its engine")
	}
	s.stop()
	if now, err := os.ReadFile(binding); err != nil || !strings.Contains(string(saved), one) || !strings.Contains(string(now), one) {
		t.Fatalf("the environment %s was not saved: %v", one, err)
	}
	r.world.set(func() { r.world.removeErr = nil })
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	if r.world.has(one) {
		t.Error("the environment of the job is still there")
	}
	r.world.set(func() {
		for _, b := range r.world.opens {
			if b.Environment == one && b.Provisioned {
				t.Error("it was opened again")
			}
		}
	})
}

// Whatever is saved of a session at the same time, the environment of a job is known
// before it is made.
func TestOneOffIsSavedAmongOthers(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	binding := filepath.Join(r.dir, "state", "sessions", v.ID, "binding.json")
	for i := range 100 {
		r.world.set(func() { r.world.waiting = make(chan struct{}) })
		var others sync.WaitGroup
		others.Go(func() {
			labels := map[string]string{"round": strconv.Itoa(i)}
			if _, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID, Labels: labels, Deferred: true}, nil); err != nil {
				t.Error(err)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		others.Go(func() {
			_, err := s.RunJob(ctx, session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"wait"}}, Constraints: session.Constraints{Image: "b"}})
			if tool.KindOf(err) != tool.Cancelled {
				t.Error(err)
			}
		})
		<-r.world.waiting
		saved, err := os.ReadFile(binding)
		r.world.set(func() {
			if one := r.world.jobs[len(r.world.jobs)-1].b.Environment; err != nil || !strings.Contains(string(saved), one) {
				t.Errorf("the environment of a job is not saved, %v", err)
			}
		})
		cancel()
		others.Wait()
	}
}

// What goes to another place goes there also when an environment that was made for a
// job on the same profile is still there.
func TestOneOffIsNoPlaceOfTools(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	where := func() string {
		t.Helper()
		var got struct{ Environment string }
		if err := json.Unmarshal(s.call(v.ID, "bash", `{"command":"ls"}`).StructuredContent, &got); err != nil || got.Environment == "" {
			t.Fatal(err)
		}
		return got.Environment
	}
	shell := where()
	r.world.set(func() { r.world.removeErr = tool.Errorf(tool.BackendUnavailable, "no engine") })
	ran, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: session.Constraints{Image: "b"}})
	if err != nil || !r.world.has(ran.b.Environment) || ran.b.Profile.Name != "box" {
		t.Fatalf("ran in %+v, %v", ran.b, err)
	}
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if got := where(); got != shell {
		t.Errorf("the shell is in %s, and was in %s; the job's is %s", got, shell, ran.b.Environment)
	}
	r.world.set(func() { r.world.removeErr = nil })
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if got := where(); got != shell {
		t.Errorf("the shell is in %s, and was in %s; the job's is %s", got, shell, ran.b.Environment)
	}
}

// A job whose environment cannot be noted as removed, since the disk is full, costs
// the session nothing.
func TestOneOffOnFullDisk(t *testing.T) {
	r := newRig(t)
	// A full disk is known by the words of its error, which have the path in them.
	r.dir = filepath.Join(r.dir, syscall.ENOSPC.Error())
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.world.waiting = make(chan struct{})
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error)
	go func() {
		_, err := s.RunJob(ctx, session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"wait"}}, Constraints: session.Constraints{Image: "b"}})
		done <- err
	}()
	<-r.world.waiting
	binding := filepath.Join(r.dir, "state", "sessions", v.ID, "binding.json")
	aside := filepath.Join(r.dir, "aside")
	if err := errors.Join(os.Rename(binding, aside), os.Mkdir(binding, 0o700)); err != nil {
		t.Fatal(err)
	}
	cancel()
	wantKind(t, <-done, tool.Cancelled)
	if err := errors.Join(os.RemoveAll(binding), os.Rename(aside, binding)); err != nil {
		t.Fatalf("the session was forgotten: %v", err)
	}
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Error(err)
	}
}
