package session_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// dividedConfig has file tools here, the shell in a container that mounts the same
// folder, and plugins in WebAssembly.
const dividedConfig = `{
	"execution_environments": {
		"overrides": {"shell.*": "box", "git.*": "full", "plugins.*": "pure"},
		"profiles": {
			"box": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}"},
			"full": {"backend": "docker", "image": "b", "host_workspace": "${workspaceFolder}"},
			"pure": {"backend": "wasm"},
			"kept": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "persistent": true},
			"common": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "shared": true},
			"apart": {"backend": "docker", "image": "a"},
		},
	},
	"execution": {"retry_backoff": "1ms"},
}`

func newDividedRig(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.more = []backends.Backend{r.world.backend(profile.WASM)}
	r.write(r.config, dividedConfig)
	return r
}

// ranIn is the profile of the environment that a call of the double really ran in.
func (r *rig) ranIn(c session.CallResult) string {
	r.t.Helper()
	var got struct{ Environment string }
	if err := json.Unmarshal(c.StructuredContent, &got); err != nil {
		r.t.Fatal(err)
	}
	for _, b := range r.world.opened() {
		if b.Environment == got.Environment {
			return b.Profile.Name
		}
	}
	return "no environment: " + string(c.StructuredContent)
}

// openedProfiles are the profiles whose environments were opened, in order.
func (r *rig) openedProfiles() (names []string) {
	for _, b := range r.world.opened() {
		names = append(names, b.Profile.Name)
	}
	return names
}

func TestOverrides(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if v.Profile != "local" || v.Backend != "local" || v.State != session.StateReady {
		t.Fatalf("opened %+v", v)
	}
	if got := r.openedProfiles(); !slices.Equal(got, []string{"local"}) {
		t.Errorf("opened at once: %v", got)
	}
	s.call(v.ID, "write_file", `{"path":"a","content":"x"}`)
	if got := r.openedProfiles(); !slices.Equal(got, []string{"local"}) {
		t.Errorf("opened for a file: %v", got)
	}
	for name, want := range map[string]string{"bash": "box", "git": "full", "lint": "pure", "grep": "local"} {
		got := s.call(v.ID, name, `{}`)
		if in := r.ranIn(got); in != want || got.Profile != want {
			t.Errorf("%s ran in %s and says %s, want %s", name, in, got.Profile, want)
		}
	}
	if got := len(r.openedProfiles()); got != 4 {
		t.Errorf("opened %v", r.openedProfiles())
	}
	// Events say where.
	s.sink.mu.Lock()
	for _, x := range s.sink.started {
		want := map[string]string{"write_file": "local", "grep": "local", "bash": "box", "git": "full", "lint": "pure"}[x.Tool]
		if x.Profile != want {
			t.Errorf("the event of %s names %s, want %s", x.Tool, x.Profile, want)
		}
	}
	s.sink.mu.Unlock()
	// People's accesses and artifacts go with the files.
	if data, err := s.ReadFile(t.Context(), v.ID, "a", 0, -1); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
	a, _, err := s.PublishArtifact(t.Context(), v.ID, "a")
	if err != nil || a.Source.Profile != "local" {
		t.Errorf("published %+v, %v", a, err)
	}
	// Each environment has a token of its own.
	tokens := map[string]bool{}
	for _, b := range r.world.opened() {
		tokens[b.Secrets.Token] = true
		if b.Session != v.ID || len(b.Secrets.Token) != 64 {
			t.Errorf("bound %+v", b)
		}
	}
	if len(tokens) != 4 {
		t.Errorf("%d tokens for 4 environments", len(tokens))
	}
}

// A tool is listed from where it goes, and only from there.
func TestToolsOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	list, err := s.Tools(t.Context(), v.ID)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, d := range list {
		if was, twice := got[d.Name]; twice {
			t.Errorf("%s is listed from %s and %s", d.Name, was, d.Profile)
		}
		got[d.Name] = d.Profile
	}
	for name, want := range map[string]string{"read_file": "local", "write_file": "local", "bash": "box", "git": "full", "lint": "pure"} {
		if got[name] != want {
			t.Errorf("%s is listed from %q, want %s", name, got[name], want)
		}
	}
	// What has the same tools as every environment is not opened for a list, which so
	// does not depend on whether it can be.
	for _, b := range r.world.opened() {
		if b.Profile.Name == "box" {
			t.Errorf("%s was opened for a list", b.Profile.Name)
		}
	}
	// An environment's own tool that goes there by its name is found.
	r.write(r.config, strings.Replace(dividedConfig, `"git.*": "full"`, `"?lugins.own": "full"`, 1))
	v = s.open(session.OpenRequest{Workspace: r.folder})
	if in := r.ranIn(s.call(v.ID, "own", `{}`)); in != "full" {
		t.Errorf("own ran in %s", in)
	}
	if _, err := s.Tools(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "nothing"})
	wantKind(t, err, tool.ToolNotFound)
	// The hint names the tools of all environments.
	if e, ok := errors.AsType[*tool.Error](err); !ok || !strings.Contains(e.Hint, "bash") || !strings.Contains(e.Hint, "read_file") {
		t.Errorf("got %#v", err)
	}
}

// A tool of the main environment's own is called there although plugins go elsewhere.
func TestOwnToolOfMain(t *testing.T) {
	r := newDividedRig(t)
	r.write(r.config, strings.Replace(dividedConfig, `"plugins.*": "pure"`, `"plugins.lint": "pure"`, 1))
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "full"})
	got := s.call(v.ID, "own", `{}`)
	if in := r.ranIn(got); in != "full" || got.Profile != "full" {
		t.Errorf("own ran in %s, says %s", in, got.Profile)
	}
}

func TestProcessesOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	p, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "sleep"})
	if err != nil || p.Environment.Profile != "box" || p.Environment.Backend != "docker" || p.Environment.ID == v.EnvironmentID {
		t.Fatalf("started %+v, %v", p, err)
	}
	// One that another environment has, such as a command of git that took long.
	s.call(v.ID, "git", `{}`)
	full := r.world.env(r.world.opened()[2].Environment, v.ID)
	adopted, err := full.Start(t.Context(), tool.StartRequest{Command: "git", Label: "foreign", Actor: v.ID})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.ListProcesses(t.Context(), v.ID)
	if err != nil || len(list) != 2 {
		t.Fatalf("listed %+v, %v", list, err)
	}
	var gits string
	for _, l := range list {
		if l.Environment.Profile == "full" {
			gits = l.ID
		}
	}
	for id, want := range map[string]string{p.ID: "box", gits: "full"} {
		got, err := s.GetProcess(t.Context(), v.ID, id)
		if err != nil || got.Environment.Profile != want || got.ID != id {
			t.Errorf("got %+v, %v", got, err)
		}
		if _, err := s.WriteProcess(t.Context(), v.ID, id, []byte("in "+want)); err != nil {
			t.Error(err)
		}
		out, err := s.ReadProcess(t.Context(), v.ID, id, session.ReadProcess{})
		if err != nil || string(out.Data) != "in "+want || out.Process.Environment.Profile != want {
			t.Errorf("read %q, %v", out.Data, err)
		}
	}
	// The tool goes where its process is, and lists all.
	tests := map[string]string{
		`{"action":"read","process_id":"` + p.ID + `"}`:       "box",
		`{"action":"read","process_id":"` + adopted.ID + `"}`: "full",
		`{"action":"read","process_id":"none"}`:               "box",
	}
	for arguments, want := range tests {
		got := s.call(v.ID, "process", arguments)
		if in := r.ranIn(got); in != want || got.Profile != want {
			t.Errorf("%s went to %s, says %s", arguments, in, got.Profile)
		}
	}
	var all struct{ Processes []tool.Process }
	if err := json.Unmarshal(s.call(v.ID, "process", `{"action":"list"}`).StructuredContent, &all); err != nil || len(all.Processes) != 2 {
		t.Errorf("the tool lists %+v, %v", all, err)
	}
	_, err = s.GetProcess(t.Context(), v.ID, "p-zzzzzzzzzzzzzzzzzzzz")
	wantKind(t, err, tool.ProcessNotFound)
	// A service that starts anew looks for them.
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	for id, want := range map[string]string{p.ID: "box", gits: "full"} {
		got, err := s.GetProcess(t.Context(), v.ID, id)
		if err != nil || got.Environment.Profile != want {
			t.Errorf("after a restart: %+v, %v", got, err)
		}
	}
}

// Events of every environment reach the sink under its own name.
func TestEventsOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	p, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "x"})
	if err != nil {
		t.Fatal(err)
	}
	env := r.world.env(p.Environment.ID, v.ID)
	env.change(p.ID, tool.EventStopped, func(p *tool.Process) { p.Status, p.OutputClosed, p.ExitCode = tool.ProcessStopped, true, 0 })
	s.sink.until(t, "the end of the process", func() bool { return len(s.sink.typesLocked(p.ID)) == 3 })
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	for _, e := range s.sink.processes {
		if e.Process.Environment.Profile != "box" {
			t.Errorf("event %+v", e)
		}
	}
	// The state of another environment is not the session's.
	if got := s.sink.states[v.ID]; got[len(got)-1] != session.StateReady {
		t.Errorf("states %v", got)
	}
}

func TestStateOfAnotherPlace(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	r.world.set(func() { r.world.fail = []error{tool.Errorf(tool.BackendUnavailable, "no engine")} })
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash"})
	wantKind(t, err, tool.BackendUnavailable)
	at, ok := errors.AsType[*session.PlaceError](err)
	if !ok || at.Profile != "box" || at.Backend != "docker" {
		t.Errorf("the error is about %+v", at)
	}
	if got, _ := s.Get(t.Context(), v.ID); got.State != session.StateReady || got.Err != nil {
		t.Errorf("the session is %+v", got)
	}
	s.call(v.ID, "bash", `{}`)
}

// What the session was opened with holds, whatever the configuration says later.
func TestOverridesAreKept(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	before := r.ranIn(s.call(v.ID, "bash", `{}`))
	box := r.world.opened()[1].Environment
	s.stop()
	r.write(r.config, `{"execution_environments": {"overrides": {"shell.*": "pure"}, "profiles": {"pure": {"backend": "wasm"}}}}`)
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if in := r.ranIn(s.call(v.ID, "bash", `{}`)); in != before || !r.world.has(box) {
		t.Errorf("bash runs in %s", in)
	}
	// A fork has the same, in environments of its own.
	f, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.call(f.ID, "bash", `{}`)
	last := r.world.opened()[len(r.world.opened())-1]
	if last.Profile.Name != "box" || last.Environment == box || last.Session != f.ID {
		t.Errorf("the fork runs bash in %+v", last)
	}
}

// The saved binding of several environments is refused by who knows of one only.
func TestBindingOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	format := func(id string) float64 {
		raw, err := os.ReadFile(filepath.Join(r.dir, "state", "sessions", id, "binding.json"))
		if err != nil {
			t.Fatal(err)
		}
		var b struct{ Format float64 }
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Fatal(err)
		}
		return b.Format
	}
	if got := format(s.open(session.OpenRequest{Workspace: r.folder}).ID); got != 2 {
		t.Errorf("several environments are saved as format %v", got)
	}
	r.write(r.config, defaultConfig)
	if got := format(s.open(session.OpenRequest{Workspace: r.folder}).ID); got != 1 {
		t.Errorf("one environment is saved as format %v", got)
	}
}

// Each environment is kept or removed as its own profile says.
func TestEndOfPlaces(t *testing.T) {
	const overrides = `"shell.*": "box", "git.*": "full", "plugins.*": "pure"`
	open := func(t *testing.T, to string) (*rig, *service, session.Session, map[string]string) {
		r := newDividedRig(t)
		r.write(r.config, strings.Replace(dividedConfig, overrides, to, 1))
		s := r.start()
		v := s.open(session.OpenRequest{Workspace: r.folder})
		s.call(v.ID, "bash", `{}`)
		s.call(v.ID, "git", `{}`)
		identities := map[string]string{}
		for _, b := range r.world.opened() {
			identities[b.Profile.Name] = b.Environment
		}
		return r, s, v, identities
	}
	const kept = `"shell.*": "kept", "git.*": "full"`
	t.Run("close", func(t *testing.T) {
		r, s, v, of := open(t, kept)
		if _, err := s.Close(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		if r.world.has(of["full"]) || r.world.has(of["local"]) || !r.world.has(of["kept"]) {
			t.Error("not what the profiles say was removed")
		}
		if ended := r.world.env(of["kept"], v.ID).ended; !ended {
			t.Error("the kept environment's processes go on")
		}
		// It resumes: the folder is on the host.
		s.open(session.OpenRequest{SessionID: v.ID})
		s.call(v.ID, "git", `{}`)
		s.call(v.ID, "bash", `{}`)
	})
	t.Run("delete", func(t *testing.T) {
		r, s, v, of := open(t, kept)
		if left, err := s.Delete(t.Context(), v.ID, false); err != nil || left != "" {
			t.Fatal(left, err)
		}
		for name, identity := range of {
			if r.world.has(identity) {
				t.Errorf("the environment of %s is still there", name)
			}
		}
		if entries, err := os.ReadDir(filepath.Join(r.dir, "state", "environments")); err != nil || len(entries) != 0 {
			t.Errorf("left on disk: %v, %v", entries, err)
		}
	})
	t.Run("detach", func(t *testing.T) {
		r, s, v, of := open(t, kept)
		s.stop()
		for name, identity := range of {
			if !r.world.has(identity) {
				t.Errorf("the environment of %s is gone", name)
				continue
			}
			select {
			case <-r.world.env(identity, v.ID).detached:
			default:
				t.Errorf("the environment of %s was not detached", name)
			}
		}
	})
	t.Run("prune", func(t *testing.T) {
		r, s, _, of := open(t, kept)
		found, err := s.Prune(t.Context(), session.PruneRequest{})
		if err != nil || len(found) != 0 || !r.world.has(of["kept"]) || !r.world.has(of["full"]) {
			t.Errorf("pruned %v, %v", found, err)
		}
	})
	t.Run("shared", func(t *testing.T) {
		r, s, v, of := open(t, `"shell.*": "common"`)
		other := s.open(session.OpenRequest{Workspace: r.folder})
		if _, err := s.Close(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
		if !r.world.has(of["common"]) {
			t.Fatal("an environment was removed that another session is bound to")
		}
		if in := r.ranIn(s.call(other.ID, "bash", `{}`)); in != "common" {
			t.Errorf("bash ran in %s", in)
		}
		f, err := s.Fork(t.Context(), session.ForkRequest{SessionID: other.ID}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Close(t.Context(), other.ID); err != nil || !r.world.has(of["common"]) {
			t.Fatalf("the fork lost its environment: %v", err)
		}
		if _, err := s.Close(t.Context(), f.ID); err != nil || r.world.has(of["common"]) {
			t.Errorf("the last one left it: %v", err)
		}
	})
	t.Run("unreachable", func(t *testing.T) {
		r, s, v, of := open(t, kept)
		r.world.set(func() { r.world.removeErr = errors.New("no engine") })
		if _, err := s.Delete(t.Context(), v.ID, false); err == nil {
			t.Fatal("deleted what could not be removed")
		}
		left, err := s.Delete(t.Context(), v.ID, true)
		if err != nil || !strings.Contains(left, of["kept"]) || !strings.Contains(left, of["full"]) {
			t.Errorf("left %q, %v", left, err)
		}
	})
}

// What was removed with everything in it does not come back empty, and the rest of
// the session works.
func TestLostPlace(t *testing.T) {
	r := newDividedRig(t)
	r.write(r.config, strings.Replace(dividedConfig, `"shell.*": "box", "git.*": "full", "plugins.*": "pure"`, `"*.nothing": "apart"`, 1))
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "nothing"})
	wantKind(t, err, tool.ToolNotFound)
	apart := r.world.opened()[1].Environment
	if _, err := s.Close(t.Context(), v.ID); err != nil || r.world.has(apart) {
		t.Fatal(err)
	}
	s.open(session.OpenRequest{SessionID: v.ID})
	s.call(v.ID, "write_file", `{"path":"a","content":"x"}`)
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "nothing"})
	wantKind(t, err, tool.EnvironmentLost)
	if r.world.has(apart) {
		t.Error("an empty environment took the place of the lost one")
	}
}

// Two file systems must never pretend to be one.
func TestOneDirectory(t *testing.T) {
	r := newDividedRig(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.folder, link); err != nil {
		t.Fatal(err)
	}
	quoted, err := json.Marshal(link)
	if err != nil {
		t.Fatal(err)
	}
	own, err := json.Marshal(filepath.Join(r.folder, "sub"))
	if err != nil {
		t.Fatal(err)
	}
	profiles := `"profiles": {
		"mounted": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}"},
		"below": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}/sub"},
		"linked": {"backend": "docker", "image": "a", "host_workspace": ` + string(quoted) + `},
		"elsewhere": {"backend": "docker", "image": "a", "host_workspace": "/srv"},
		"apart": {"backend": "docker", "image": "a"},
		"copied": {"backend": "docker", "image": "a", "workspace_source": "copy"},
		"far": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "docker_host": "ssh://there"},
		"covered": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "mounts": [{"source": "/srv", "target": "/workspace/sub"}]},
		"beside": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "mounts": [{"source": "/srv", "target": "/workspace-cache"}]},
		"itself": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "mounts": [{"source": ` + string(own) + `, "target": "/workspace/sub", "readonly": true}]},
		"guest": {"backend": "wasm", "preopens": ["/::${workspaceFolder}"]},
		"blind": {"backend": "wasm"},
	}`
	tests := []struct {
		name, overrides, profile string
		refused                  bool
		says                     []string
	}{
		{"the opened folder mounted", `"shell.*": "mounted"`, "", false, nil},
		{"the other way round", `"file.*": "local"`, "mounted", false, nil},
		{"through a link", `"shell.*": "linked"`, "", false, nil},
		{"mounted twice", `"shell.*": "linked"`, "mounted", false, nil},
		{"read by a guest", `"file.read_file": "guest"`, "", false, nil},
		{"plugins may be anywhere", `"plugins.*": "blind"`, "", false, nil},
		{"all goes to one", `"*": "apart"`, "", false, nil},
		{"a mount over a part", `"shell.*": "covered"`, "", true, []string{"sub from /srv", `"covered"`, "beside the workspace"}},
		{"the same mount in both", `"file.*": "covered"`, "covered", false, nil},
		{"a mount beside", `"shell.*": "beside"`, "", false, nil},
		{"a part of itself", `"shell.*": "itself"`, "", false, nil},
		{"a folder below", `"shell.*": "below"`, "", true, []string{"file.read_file", "shell.bash", `"local"`, `"below"`, r.folder}},
		{"another folder", `"shell.*": "elsewhere"`, "", true, []string{"/srv"}},
		{"no folder", `"shell.*": "apart"`, "", true, []string{"a directory of its own", "host_workspace"}},
		{"a copy", `"shell.*": "copied"`, "", true, nil},
		{"two of their own", `"git.*": "apart"`, "copied", true, nil},
		{"another machine's folder", `"shell.*": "far"`, "", true, []string{"ssh://there"}},
		{"a guest without a folder", `"search.*": "blind"`, "", true, []string{"preopens", "search.glob"}},
		{"one tool of a group", `"file.write_file": "apart"`, "", true, []string{"file.write_file"}},
		{"all but one", `"*": "apart", "artifact.*": "local"`, "", true, []string{"artifact.present_artifact"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r.write(r.config, `{"execution_environments": {"overrides": {`+test.overrides+`}, `+profiles+`}}`)
			s := r.start()
			v, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder, Profile: test.profile, Deferred: true}, nil)
			if !test.refused {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			wantKind(t, err, tool.ConfigInvalid)
			e, ok := errors.AsType[*tool.Error](err)
			if !ok || e.Hint == "" || e.Path != "execution_environments.overrides" || v.ID != "" {
				t.Fatalf("got %+v, %+v", e, v)
			}
			for _, word := range test.says {
				if !strings.Contains(e.Message+e.Hint, word) {
					t.Errorf("%q says nothing of %q", e.Message+" "+e.Hint, word)
				}
			}
		})
	}
}

// An override that cannot be opened stops the session, and says which it was.
func TestOverrideThatCannotBe(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	for name, test := range map[string]struct {
		request session.OpenRequest
		kind    tool.Kind
		about   string
	}{
		"no folder":  {session.OpenRequest{}, tool.ConfigInvalid, "box"},
		"a limit":    {session.OpenRequest{Workspace: r.folder, Profile: "box", Constraints: session.Constraints{CPUs: 0.5}}, tool.Unsupported, "pure"},
		"local only": {session.OpenRequest{Workspace: r.folder, Constraints: session.Constraints{Network: "none"}}, tool.Unsupported, "local"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := s.Open(t.Context(), test.request, nil)
			wantKind(t, err, test.kind)
			if at, ok := errors.AsType[*session.PlaceError](err); !ok || at.Profile != test.about {
				t.Errorf("%v is about %+v, want %s", err, at, test.about)
			}
		})
	}
	// Limits hold for every environment of the session.
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Constraints: session.Constraints{
		Network: "none", Memory: 32 << 20, Image: "c", Filesystem: "read_only",
	}})
	s.call(v.ID, "git", `{}`)
	s.call(v.ID, "lint", `{}`)
	for _, b := range r.world.opened() {
		p := b.Profile
		switch p.Name {
		case "box", "full":
			if p.Memory != 32<<20 || p.MaxPermissionMode != tool.ReadOnly || (p.Image == "c") != (p.Name == "box") {
				t.Errorf("bound %+v", p)
			}
		case "pure":
			if p.MaxMemoryPages != 512 || p.MaxPermissionMode != tool.ReadOnly {
				t.Errorf("bound %+v", p)
			}
		default:
			t.Errorf("opened %s", p.Name)
		}
	}
}

// A path that is right in another environment of the session is told how to be right
// everywhere.
func TestPathsOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	s.call(v.ID, "lint", `{}`)
	s.call(v.ID, "bash", `{}`)
	for path, want := range map[string]string{
		"/workspace/a/b": "as a/b:", "/workspace": "as .:", "/workspaces/a": "", "/etc/passwd": "", "../a": "",
	} {
		r.world.set(func() { r.world.refuse = []error{tool.Errorf(tool.PathOutsideRoot, "outside").WithPath(path)} })
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "read_file"})
		wantKind(t, err, tool.PathOutsideRoot)
		e, _ := errors.AsType[*tool.Error](err)
		if at, _ := errors.AsType[*session.PlaceError](err); at == nil || at.Profile != "local" {
			t.Errorf("the error is about %+v", at)
		}
		if (want == "") != (e.Hint == "") || !strings.Contains(e.Hint, want) {
			t.Errorf("%s: hint %q, want %q", path, e.Hint, want)
		}
	}
}

// The ids that a caller gives stand in both events of whatever runs.
func TestIDsInEvents(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", CallID: "bash", RunID: "run", NodeName: "node"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "x", CallID: "process.start", RunID: "run", NodeName: "node"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RunJob(t.Context(), session.JobRequest{
		SessionID: v.ID, Job: backends.JobRequest{ID: "shell.job", Argv: []string{"x"}}, RunID: "run", NodeName: "node",
	}); err != nil {
		t.Fatal(err)
	}
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	if len(s.sink.started) != 3 || len(s.sink.completed) != 3 {
		t.Fatalf("%d started, %d completed", len(s.sink.started), len(s.sink.completed))
	}
	for _, x := range append(s.sink.started, s.sink.completed...) {
		if x.CallID != x.Tool || x.RunID != "run" || x.NodeName != "node" || x.SessionID != v.ID || x.Profile != "box" || x.Backend != "docker" {
			t.Errorf("event %+v", x)
		}
	}
}

// A project's limits hold in every environment of the session, and one that cannot
// hold them is an error.
func TestProjectOfPlaces(t *testing.T) {
	r := newDividedRig(t)
	s := r.start()
	file := filepath.Join(r.folder, ".caisson.json")
	r.write(file, `{"execution": {"timeout": "3s"}, "limits": {"memory_mb": 32, "filesystem": "read_only"}}`)
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.Unsupported)
	if at, ok := errors.AsType[*session.PlaceError](err); !ok || at.Profile != "local" {
		t.Errorf("the error is about %+v", at)
	}
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "full"})
	s.call(v.ID, "bash", `{}`)
	s.call(v.ID, "lint", `{}`)
	opened := r.world.opened()
	if len(opened) != 3 {
		t.Fatalf("opened %v", r.openedProfiles())
	}
	for _, b := range opened {
		p := b.Profile
		if p.Timeout.String() != "3s" || p.MaxPermissionMode != tool.ReadOnly || p.Memory != 32<<20 && p.MaxMemoryPages != 512 {
			t.Errorf("%s has %+v", p.Name, p)
		}
	}
	// It can choose a profile and send no tool anywhere.
	r.write(file, `{"execution_environments": {"overrides": {"shell.*": "local"}}}`)
	_, _, err = s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.ConfigInvalid)
	if !strings.Contains(err.Error(), "only tighten") {
		t.Errorf("got %v", err)
	}
}
