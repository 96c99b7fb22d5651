package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// job runs a job and returns it as the environment was asked for it.
func (s *service) job(r session.JobRequest) (ranJob, error) {
	s.t.Helper()
	if r.Job.Argv == nil {
		r.Job.Argv = []string{"true"}
	}
	_, err := s.RunJob(s.t.Context(), r)
	s.rig.world.mu.Lock()
	defer s.rig.world.mu.Unlock()
	if err != nil || len(s.rig.world.jobs) == 0 {
		return ranJob{}, err
	}
	return s.rig.world.jobs[len(s.rig.world.jobs)-1], nil
}

// Of each limit the least holds that call, session, project and profile say.
func TestLimitsOfJobs(t *testing.T) {
	type c = session.Constraints
	tests := []struct {
		name          string
		project       string
		session, call c
		want          backends.JobRequest
		kind          tool.Kind
	}{
		{"the profile's", "", c{}, c{}, backends.JobRequest{Timeout: time.Minute, MaxOutputBytes: 1000, Mode: tool.Standard}, ""},
		{"the call's", "", c{}, c{Timeout: time.Second, MaxOutputBytes: 10, CPUTime: 2 * time.Second, Memory: 1 << 20, Filesystem: "read_only"},
			backends.JobRequest{Timeout: time.Second, MaxOutputBytes: 10, CPUTime: 2 * time.Second, Memory: 1 << 20, Mode: tool.ReadOnly}, ""},
		{"above the profile's", "", c{}, c{Timeout: time.Hour, MaxOutputBytes: 2000}, backends.JobRequest{Timeout: time.Minute, MaxOutputBytes: 1000, Mode: tool.Standard}, ""},
		{"the session's", "", c{Timeout: 2 * time.Second, MaxOutputBytes: 20}, c{Timeout: 3 * time.Second}, backends.JobRequest{Timeout: 2 * time.Second, MaxOutputBytes: 20, Mode: tool.Standard}, ""},
		{"the session's for jobs", "", c{Scope: "jobs", Timeout: 2 * time.Second, CPUTime: time.Second, Memory: 1 << 20, Filesystem: "read_only"},
			c{Scope: "jobs", Timeout: 3 * time.Second, CPUTime: 2 * time.Second, Memory: 2 << 20},
			backends.JobRequest{Timeout: 2 * time.Second, CPUTime: time.Second, Memory: 1 << 20, MaxOutputBytes: 1000, Mode: tool.ReadOnly}, ""},
		{"below the session's for jobs", "", c{Scope: "jobs", CPUTime: 3 * time.Second}, c{CPUTime: time.Second},
			backends.JobRequest{Timeout: time.Minute, CPUTime: time.Second, MaxOutputBytes: 1000, Mode: tool.Standard}, ""},
		{"not the session's for tools", "", c{Scope: "tools", Timeout: time.Second, MaxOutputBytes: 1, Filesystem: "read_only"}, c{},
			backends.JobRequest{Timeout: time.Minute, MaxOutputBytes: 1000, Mode: tool.Standard}, ""},
		{"the project's", `{"execution": {"timeout": "5s", "max_output_bytes": 50}}`, c{Timeout: time.Minute}, c{Timeout: 6 * time.Second},
			backends.JobRequest{Timeout: 5 * time.Second, MaxOutputBytes: 50, Mode: tool.Standard}, ""},
		{"of tools", "", c{}, c{Scope: "tools", Timeout: time.Second}, backends.JobRequest{}, tool.Unsupported},
		{"no network here", "", c{}, c{Network: "none"}, backends.JobRequest{}, tool.Unsupported},
		{"another network than the session's", "", c{Scope: "jobs", Network: "none", Profile: "box"}, c{Network: "enabled"}, backends.JobRequest{}, tool.Denied},
		{"another image than the session's", "", c{Scope: "jobs", Image: "a", Profile: "box"}, c{Image: "b"}, backends.JobRequest{}, tool.Denied},
		{"another profile than the session's", "", c{Scope: "jobs", Profile: "box"}, c{Profile: "kept"}, backends.JobRequest{}, tool.Denied},
		{"a profile that is none", "", c{}, c{Profile: "nobody"}, backends.JobRequest{}, tool.ProfileNotFound},
		{"a mode above", "", c{Scope: "jobs", Filesystem: "read_only"}, c{Filesystem: "read_only"},
			backends.JobRequest{Timeout: time.Minute, MaxOutputBytes: 1000, Mode: tool.ReadOnly}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			if test.project != "" {
				r.write(filepath.Join(r.folder, ".caisson.json"), test.project)
			}
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Constraints: test.session})
			ran, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: test.call})
			if test.kind != "" {
				wantKind(t, err, test.kind)
				return
			}
			got := ran.r
			if err != nil || got.Timeout != test.want.Timeout || got.CPUTime != test.want.CPUTime || got.Memory != test.want.Memory ||
				got.MaxOutputBytes != test.want.MaxOutputBytes || got.Mode != test.want.Mode {
				t.Errorf("got %+v, %v, want %+v", got, err, test.want)
			}
			if ran.b.Environment != v.EnvironmentID {
				t.Error("the job ran in another environment")
			}
		})
	}
}

// Limits that a session has for tools alone hold for these, and are kept.
func TestLimitsOfTools(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Constraints: session.Constraints{
		Scope: "tools", Timeout: time.Second, MaxOutputBytes: 7, Filesystem: "read_only",
	}})
	check := func(s *service) {
		t.Helper()
		got, err := s.request(session.CallRequest{SessionID: v.ID})
		if err != nil || got.Timeout != time.Second+5*time.Second || got.MaxOutputBytes != 7 || got.Mode != tool.ReadOnly {
			t.Errorf("asked %+v, %v", got, err)
		}
		_, err = s.WriteFile(t.Context(), v.ID, "a", nil)
		wantKind(t, err, tool.Denied)
	}
	check(s)
	f, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.WriteFile(t.Context(), f.ID, "a", nil)
	wantKind(t, err, tool.Denied)
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	check(s)
	// They were fixed when it was made.
	_, _, err = s.Open(t.Context(), session.OpenRequest{SessionID: v.ID, Constraints: session.Constraints{Scope: "tools", Timeout: time.Hour}}, nil)
	wantKind(t, err, tool.InvalidParams)
	for name, c := range map[string]session.Constraints{
		"network": {Scope: "tools", Network: "none"}, "cpuTime": {Scope: "tools", CPUTime: 1}, "profile": {Scope: "tools", Profile: "box"},
	} {
		_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Constraints: c}, nil)
		wantKind(t, err, tool.Unsupported)
		if err != nil && !strings.Contains(err.Error(), name) {
			t.Errorf("%v says nothing of %s", err, name)
		}
	}
}

// environments are those that the state directory knows.
func (r *rig) environments() []string {
	r.t.Helper()
	entries, err := os.ReadDir(filepath.Join(r.dir, "state", "environments"))
	if err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

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

// A job without a session has one of its own on the profile, whatever the overrides.
func TestJobOnProfile(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	ran, err := s.job(session.JobRequest{Profile: "apart", Constraints: session.Constraints{Memory: 64 << 20, Timeout: time.Second, CPUTime: time.Second}})
	if err != nil || ran.b.Profile.Name != "apart" || ran.b.Profile.Memory != 64<<20 || ran.r.Timeout != time.Second || ran.r.CPUTime != time.Second {
		t.Fatalf("ran %+v in %+v, %v", ran.r, ran.b.Profile, err)
	}
	list, err := s.List(t.Context(), session.Filter{})
	if err != nil || len(list) != 0 || len(r.environments()) != 0 || r.world.has(ran.b.Environment) {
		t.Errorf("left %v, %v, %v", list, r.environments(), err)
	}
	if _, err := s.job(session.JobRequest{Profile: "local", Constraints: session.Constraints{Memory: 64 << 20}}); err != nil {
		t.Error(err)
	}
}

// The session of a job that could not be deleted after it, or whose service was killed,
// goes when the next service runs one; those of people stay, whatever their labels.
func TestJobsAreReaped(t *testing.T) {
	r := newRig(t)
	other := r.start()
	v := other.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Labels: map[string]string{"caisson.job": "true"}})
	// The session of a job that runs elsewhere is not such a one.
	r.world.waiting = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := other.RunJob(ctx, session.JobRequest{Profile: "kept", Job: backends.JobRequest{Argv: []string{"wait"}}})
		done <- err
	}()
	<-r.world.waiting

	s := r.start()
	r.world.set(func() { r.world.removeErr = tool.Errorf(tool.BackendUnavailable, "no engine") })
	left, err := s.job(session.JobRequest{Profile: "kept"})
	if err != nil || !r.world.has(left.b.Environment) {
		t.Fatalf("ran in %+v, %v", left.b, err)
	}
	s.stop()
	r.world.set(func() { r.world.removeErr = nil })

	s = r.start()
	if _, err := s.job(session.JobRequest{Profile: "box"}); err != nil {
		t.Fatal(err)
	}
	s.sink.until(t, "the session of the earlier job is closed", func() bool {
		return slices.Contains(s.sink.states[left.b.Session], session.StateClosed)
	})
	s.stop()
	select {
	case err := <-done:
		t.Errorf("the job that runs was ended: %v", err)
	default:
	}
	cancel()
	wantKind(t, <-done, tool.Cancelled)
	list, err := other.List(t.Context(), session.Filter{})
	if err != nil || len(list) != 1 || list[0].ID != v.ID || r.world.has(left.b.Environment) {
		t.Errorf("left %+v, %v", list, err)
	}
}

// Constraints for jobs that no job could have are refused at once.
func TestConstraintsOfJobs(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	for name, test := range map[string]struct {
		c    session.Constraints
		kind tool.Kind
	}{
		"a profile that is none":       {session.Constraints{Profile: "nobody"}, tool.ProfileNotFound},
		"a network of this machine":    {session.Constraints{Network: "none", Profile: "local"}, tool.Unsupported},
		"a wider network":              {session.Constraints{Network: "enabled"}, tool.Denied},
		"execution in /tmp":            {session.Constraints{TmpfsNoexec: new(false)}, tool.Denied},
		"an image, where the shell is": {session.Constraints{Image: "b"}, ""},
		"time on the processor":        {session.Constraints{CPUTime: time.Second}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			test.c.Scope = "jobs"
			_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Constraints: test.c}, nil)
			if test.kind == "" && err != nil || test.kind != "" && tool.KindOf(err) != test.kind {
				t.Errorf("got %v, want %q", err, test.kind)
			}
		})
	}
}

// A session's network for jobs is a ceiling where the profile itself would allow more.
func TestNetworkOfJobs(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {"net": {"backend": "docker", "image": "a", "network": "enabled"}}}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "net", Constraints: session.Constraints{Scope: "jobs", Network: "none"}})
	_, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: session.Constraints{Network: "enabled"}})
	wantKind(t, err, tool.Denied)
	for _, c := range []session.Constraints{{}, {Network: "none"}} {
		ran, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: c})
		if err != nil || ran.b.Profile.Network != "none" || ran.b.Environment == v.EnvironmentID {
			t.Errorf("ran in %+v, %v", ran.b.Profile, err)
		}
	}
	// Its tools have what the profile has.
	if got := s.env(v).b.Profile.Network; got != "enabled" {
		t.Errorf("the session's network is %s", got)
	}
}

// A job on another profile has what the session and the project were limited to when
// the session was made, whatever the project's file says by then.
func TestSessionLimitsOfJobsElsewhere(t *testing.T) {
	config := `{"execution_environments": {"profiles": {"net": {"backend": "docker", "image": "a", "network": "enabled"}}}}`
	type c = session.Constraints
	tests := map[string]struct {
		project string
		session c
		profile string
		check   func(ran ranJob) bool
	}{
		"network":    {"", c{Network: "none"}, "net", func(ran ranJob) bool { return ran.b.Profile.Network == "none" }},
		"filesystem": {"", c{Filesystem: "read_only"}, "local", func(ran ranJob) bool { return ran.r.Mode == tool.ReadOnly }},
		"timeout":    {"", c{Timeout: time.Second}, "local", func(ran ranJob) bool { return ran.r.Timeout == time.Second }},
		"memory":     {"", c{Memory: 64 << 20}, "net", func(ran ranJob) bool { return ran.b.Profile.Memory == 64<<20 }},
		"tmpfs":      {"", c{TmpfsNoexec: new(true)}, "net", func(ran ranJob) bool { return ran.b.Profile.TmpfsNoexec }},
		"the project's": {`{"limits": {"network": "none", "pids_limit": 7}}`, c{}, "net",
			func(ran ranJob) bool { return ran.b.Profile.Network == "none" && ran.b.Profile.PidsLimit == 7 }},
		"the image is its own": {"", c{Image: "b"}, "net", func(ran ranJob) bool { return ran.b.Profile.Image == "a" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.config, strings.Replace(config, `"profiles": {`, `"profiles": {"box": {"backend": "docker", "image": "a"},`, 1))
			if test.project != "" {
				r.write(filepath.Join(r.folder, ".caisson.json"), test.project)
			}
			s := r.start()
			on := "box"
			if test.session.Filesystem != "" || test.session.Timeout > 0 {
				on = "net"
			}
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: on, Constraints: test.session})
			f, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
			if err != nil {
				t.Fatal(err)
			}
			s.stop()
			r.write(filepath.Join(r.folder, ".caisson.json"), `{}`)
			s = r.start()
			for _, id := range []string{v.ID, f.ID} {
				s.open(session.OpenRequest{SessionID: id})
				ran, err := s.job(session.JobRequest{SessionID: id, Constraints: c{Profile: test.profile}})
				if err != nil || !test.check(ran) {
					t.Errorf("ran %+v in %+v, %v", ran.r, ran.b.Profile, err)
				}
			}
		})
	}
	// What a profile cannot be held to is refused, and not forgotten.
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Constraints: c{Network: "none"}})
	_, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: c{Profile: "local"}})
	wantKind(t, err, tool.Unsupported)
	if err == nil || !strings.Contains(err.Error(), "session") {
		t.Error(err)
	}
}
