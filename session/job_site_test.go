package session_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
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
		if err != nil || got.Timeout != time.Second || got.MaxOutputBytes != 7 || got.Mode != tool.ReadOnly {
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
