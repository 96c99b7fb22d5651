package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

func TestOpen(t *testing.T) {
	r := newRig(t)
	s := r.start()
	var steps []string
	v, resumed, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "box", Labels: map[string]string{"chat": "7"}},
		func(step string) { steps = append(steps, step) })
	if err != nil {
		t.Fatal(err)
	}
	if resumed || v.State != session.StateReady || v.Profile != "box" || v.Backend != "docker" || v.Root != "/double" ||
		v.Workspace != "file://"+r.folder || v.Labels["chat"] != "7" || v.Shared || v.Persistent {
		t.Errorf("got %+v", v)
	}
	if len(steps) == 0 {
		t.Error("no progress was reported")
	}
	want := []session.State{session.StateBound, session.StateConnecting, session.StateReady}
	if got := s.sink.statesOf(v.ID); !slices.Equal(got, want) {
		t.Errorf("states %v", got)
	}
	b := r.world.opened()[0]
	if b.Session != v.ID || b.Provisioned || b.WorkspaceFolder != r.folder || len(b.Secrets.Token) != 64 || b.Store == "" {
		t.Errorf("binding %+v", b)
	}
	if got, err := s.Get(t.Context(), v.ID); err != nil || !reflect.DeepEqual(got.Labels, v.Labels) || got.State != session.StateReady {
		t.Errorf("get: %+v, %v", got, err)
	}
	list, err := s.List(t.Context(), session.Filter{State: session.StateReady, Labels: map[string]string{"chat": "7"}})
	if err != nil || len(list) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	for _, f := range []session.Filter{{State: session.StateClosed}, {Labels: map[string]string{"chat": "8"}}, {Labels: map[string]string{"x": ""}}} {
		if list, err := s.List(t.Context(), f); err != nil || len(list) != 0 {
			t.Errorf("list of %+v: %v, %v", f, list, err)
		}
	}
	if list, err := s.List(t.Context(), session.Filter{State: "running"}); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("list of a state that is none: %v, %v", list, err)
	}
}

func TestChoiceOfProfile(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"default": "box", "profiles": {"box": {"backend": "docker", "image": "a"}, "far": {"backend": "ssh", "host": "h"}}}}`)
	s := r.start()
	tests := []struct {
		name string
		ask  session.OpenRequest
		want string
		kind tool.Kind
	}{
		{"the default", session.OpenRequest{Workspace: r.folder}, "box", ""},
		{"a file URI", session.OpenRequest{Workspace: "file://" + r.folder}, "box", ""},
		{"no folder is local", session.OpenRequest{}, "local", ""},
		{"local by name", session.OpenRequest{Workspace: r.folder, Profile: "local"}, "local", ""},
		{"by constraint", session.OpenRequest{Workspace: r.folder, Constraints: session.Constraints{Profile: "local"}}, "local", ""},
		{"a clash", session.OpenRequest{Workspace: r.folder, Profile: "box", Constraints: session.Constraints{Profile: "local"}}, "", tool.InvalidParams},
		{"unknown", session.OpenRequest{Workspace: r.folder, Profile: "bax"}, "", tool.ProfileNotFound},
		{"still to come", session.OpenRequest{Workspace: r.folder, Profile: "far"}, "", tool.Unsupported},
		{"another scheme", session.OpenRequest{Workspace: "vscode-remote://x/y"}, "", tool.InvalidParams},
		{"a path that is no text", session.OpenRequest{Workspace: "file:///srv/caf%E9"}, "", tool.InvalidParams},
		{"another host", session.OpenRequest{Workspace: "file://elsewhere/y"}, "", tool.InvalidParams},
		{"a relative path", session.OpenRequest{Workspace: "x/y"}, "", tool.InvalidParams},
		{"a folder that is not there", session.OpenRequest{Workspace: filepath.Join(r.folder, "none")}, "", tool.InvalidParams},
		{"a bad id", session.OpenRequest{SessionID: "../x"}, "", tool.InvalidParams},
		{"a label that is too long", session.OpenRequest{Labels: map[string]string{"a": strings.Repeat("x", 257)}}, "", tool.InvalidParams},
		{"network of local", session.OpenRequest{Constraints: session.Constraints{Network: "none"}}, "", tool.Unsupported},
		{"cpu time", session.OpenRequest{Constraints: session.Constraints{CPUTime: 1}}, "", tool.Unsupported},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, _, err := s.Open(t.Context(), tt.ask, nil)
			if tt.kind != "" {
				wantKind(t, err, tt.kind)
				return
			}
			if err != nil || v.Profile != tt.want {
				t.Errorf("got %+v, %v", v, err)
			}
		})
	}
}

// A configuration with an error lets no new session open, and says so with its
// place; sessions that exist are resumed meanwhile.
func TestBadConfiguration(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.stop()
	for name, text := range map[string]string{
		"an error":   "{\n  \"gard\": {}\n}",
		"the end":    `{"execution_environments": {`,
		"no profile": `{"execution_environments": {"default": "nowhere"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r.write(r.config, text)
			s := r.start()
			defer s.stop()
			_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "local"}, nil)
			wantKind(t, err, tool.ConfigInvalid)
			if !strings.Contains(err.Error(), r.config+":") {
				t.Errorf("the error does not name its place: %v", err)
			}
			got, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil)
			if err != nil || !resumed || got.EnvironmentID != v.EnvironmentID {
				t.Errorf("resumed: %+v, %t, %v", got, resumed, err)
			}
		})
	}
}

// What is configured and cannot be enforced stops a session.
func TestNothingIsIgnored(t *testing.T) {
	for name, text := range map[string]string{
		"plugins":       `{"tools": {"plugins": [{"name": "bash", "wasm": "/bash.wasm"}]}}`,
		"allowed hosts": `{"execution_environments": {"default": "box", "profiles": {"box": {"backend": "docker", "image": "a", "network": "enabled", "allowed_hosts": ["example.org"]}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.write(r.config, text)
			s := r.start()
			_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
			wantKind(t, err, tool.Unsupported)
			if opens := r.world.opened(); len(opens) != 0 {
				t.Errorf("%d environments were opened", len(opens))
			}
		})
	}
	t.Run("packs of another profile", func(t *testing.T) {
		r := newRig(t)
		r.write(r.config, `{"tools": {"packs": [{"name": "lint", "command": "lint", "profiles": ["box"]}]},
			"execution_environments": {"profiles": {"box": {"backend": "docker", "image": "a"}}}}`)
		r.start().open(session.OpenRequest{Workspace: r.folder})
	})
	t.Run("overrides to the own profile", func(t *testing.T) {
		r := newRig(t)
		r.write(r.config, `{"execution_environments": {"overrides": {"shell.*": "local"}}, "guard": {"confirm_timeout": "1m"}}`)
		r.start().open(session.OpenRequest{Workspace: r.folder})
	})
}

func TestProjectFile(t *testing.T) {
	r := newRig(t)
	file := filepath.Join(r.folder, ".caisson.json")
	s := r.start()
	r.write(file, `{"execution": {"timeout": "1s"}, "limits": {"network": "none", "memory_mb": 64}}`)
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	p := s.env(v).b.Profile
	if p.Timeout.String() != "1s" || p.Memory != 64<<20 {
		t.Errorf("got %+v", p)
	}
	for text, kind := range map[string]tool.Kind{
		`{"execution_environments": {"default": "box"}}`: tool.ConfigInvalid, // not listed by the user
		`{"execution_environments": {"profiles": {}}}`:   tool.ConfigInvalid,
		`{`: tool.ConfigInvalid,
	} {
		r.write(file, text)
		_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "box"}, nil)
		wantKind(t, err, kind)
	}
	// What the backend cannot hold is an error too.
	r.write(file, `{"limits": {"network": "none"}}`)
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.Unsupported)
	if e := (*tool.Error)(nil); !errors.As(err, &e) || e.Path != "limits.network" || !strings.Contains(e.Message, ".caisson.json") {
		t.Errorf("got %v about %q", err, e.Path)
	}
	// The project's choice, when the user listed it.
	r.write(r.config, strings.Replace(defaultConfig, `"execution":`, `"project_profiles": ["box"], "execution":`, 1))
	r.write(file, `{"execution_environments": {"default": "box"}}`)
	if v := s.open(session.OpenRequest{Workspace: r.folder}); v.Profile != "box" {
		t.Errorf("got %+v", v)
	}
}

// The binding is on disk before anything is created, and a creation that fails
// leaves no session behind.
func TestFailedCreation(t *testing.T) {
	r := newRig(t)
	s := r.start()
	r.world.fail = []error{tool.Errorf(tool.BackendUnavailable, "no daemon")}
	_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: "mine", Workspace: r.folder, Profile: "box"}, nil)
	wantKind(t, err, tool.BackendUnavailable)
	if _, err := s.Get(t.Context(), "mine"); tool.KindOf(err) != tool.SessionNotFound {
		t.Errorf("get: %v", err)
	}
	for _, dir := range []string{"sessions", "environments"} {
		entries, err := os.ReadDir(filepath.Join(r.dir, "state", dir))
		if err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", dir, entries, err)
		}
	}
	if v := s.open(session.OpenRequest{SessionID: "mine", Workspace: r.folder, Profile: "box"}); v.ID != "mine" {
		t.Errorf("got %+v", v)
	}
}

func TestBindingComesFirst(t *testing.T) {
	r := newRig(t)
	r.world.block, r.world.entered = make(chan struct{}), make(chan struct{}, 1)
	s := r.start()
	done := make(chan error)
	go func() {
		_, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: "mine", Workspace: r.folder, Profile: "box"}, nil)
		done <- err
	}()
	<-r.world.entered
	state := filepath.Join(r.dir, "state")
	for _, file := range []string{"sessions/mine/binding.json", "sessions/mine/token", "environments/*/environment.json"} {
		if found, err := filepath.Glob(filepath.Join(state, file)); err != nil || len(found) != 1 {
			t.Errorf("%s: %v, %v", file, found, err)
		}
	}
	if found, err := filepath.Glob(filepath.Join(state, "environments/*/provisioned")); err != nil || len(found) != 0 {
		t.Errorf("marked before it was created: %v, %v", found, err)
	}
	close(r.world.block)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if found, err := filepath.Glob(filepath.Join(state, "environments/*/provisioned")); err != nil || len(found) != 1 {
		t.Errorf("not marked: %v, %v", found, err)
	}
}

func TestRetries(t *testing.T) {
	r := newRig(t)
	s := r.start()
	passing := &tool.Error{Kind: tool.BackendUnavailable, Message: "not yet", Retryable: true}
	r.world.fail = []error{passing, passing}
	s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	if n := len(r.world.opened()); n != 3 {
		t.Errorf("%d tries", n)
	}
	r.world.set(func() { r.world.fail = slices.Repeat([]error{passing}, 10) })
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "box"}, nil)
	wantKind(t, err, tool.BackendUnavailable)
	if n := len(r.world.opened()); n != 3+4 {
		t.Errorf("%d tries, 3 again after the first", n-3)
	}
}

// Who has waited for an engine that did not answer in time does not wait again.
func TestNoRetryAfterALongTry(t *testing.T) {
	r := newRig(t)
	var passed atomic.Int64
	r.now = func() time.Time { return time.Unix(passed.Add(2), 0) }
	s := r.start()
	r.world.fail = []error{&tool.Error{Kind: tool.BackendUnavailable, Message: "no answer", Retryable: true}}
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "box"}, nil)
	wantKind(t, err, tool.BackendUnavailable)
	if n := len(r.world.opened()); n != 1 {
		t.Errorf("%d tries", n)
	}
}

func TestCancelledOpening(t *testing.T) {
	r := newRig(t)
	r.world.block, r.world.entered = make(chan struct{}), make(chan struct{}, 1)
	s := r.start()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, _, err := s.Open(ctx, session.OpenRequest{SessionID: "mine", Workspace: r.folder, Profile: "box"}, nil)
		done <- err
	}()
	<-r.world.entered
	cancel()
	wantKind(t, <-done, tool.Cancelled)
	if _, err := s.Get(t.Context(), "mine"); tool.KindOf(err) != tool.SessionNotFound {
		t.Errorf("get: %v", err)
	}
}

// Many who need the environment at once open it once; one who gives up does
// not take it from the others.
func TestSingleFlight(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Deferred: true})
	if v.State != session.StateBound || len(r.world.opened()) != 0 {
		t.Fatalf("deferred: %+v, %d opens", v, len(r.world.opened()))
	}
	r.world.block, r.world.entered = make(chan struct{}), make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	impatient := make(chan error)
	go func() {
		_, err := s.Tools(ctx, v.ID)
		impatient <- err
	}()
	<-r.world.entered
	const n = 8
	patient := make(chan error)
	for range n {
		go func() {
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "request"})
			patient <- err
		}()
	}
	// They wait for the opening, or will, when all have begun.
	s.sink.until(t, "all calls to begin", func() bool { return len(s.sink.executions) == n })
	cancel()
	wantKind(t, <-impatient, tool.Cancelled)
	close(r.world.block)
	for range n {
		if err := <-patient; err != nil {
			t.Error(err)
		}
	}
	if opens := r.world.opened(); len(opens) != 1 {
		t.Errorf("%d opens", len(opens))
	}
}

func TestForwardedVariables(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "forward"})
	if got := s.env(v).b.Secrets.Environment["TOKEN"]; got != "s3cret" {
		t.Errorf("the variable is %q", got)
	}
	s.stop()
	// Nothing secret is on disk but the session's token.
	err := filepath.WalkDir(filepath.Join(r.dir, "state"), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		if strings.Contains(string(raw), "s3cret") {
			t.Errorf("%s holds the value", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	r.vars = nil
	s = r.start()
	_, _, err = s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: "forward"}, nil)
	wantKind(t, err, tool.ConfigInvalid)
	if err == nil || !strings.Contains(err.Error(), "TOKEN") {
		t.Errorf("the variable is not named: %v", err)
	}
	// What exists was given its variables already.
	if _, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); err != nil || !resumed {
		t.Fatalf("resume: %v", err)
	}
	if b := s.env(v).b; !b.Provisioned || b.Secrets.Environment != nil {
		t.Errorf("binding %+v, variables %v", b, b.Secrets.Environment)
	}
}

// What a workspace is instead of a folder is said as it is.
func TestWorkspaceIsNoFolder(t *testing.T) {
	r := newRig(t)
	s := r.start()
	file := filepath.Join(r.folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		file:                            file + " is no folder",
		filepath.Join(r.folder, "none"): "none is not there",
		filepath.Join(file, "below"):    "not a directory",
	} {
		_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: path}, nil)
		wantKind(t, err, tool.InvalidParams)
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}
