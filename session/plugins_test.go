package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/plugins"
)

// moduleBackend is a double of wasm whose environments "run" modules: a module is
// the list of its tools, and each of them says where and how it was run.
type moduleBackend struct {
	backends.Backend
	mu   sync.Mutex
	runs []string // "PROFILE MODE ACTION"
	fail error
}

type moduleEnvironment struct {
	backends.Environment
	backend *moduleBackend
	profile string
}

func (m *moduleBackend) Open(ctx context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	env, err := m.Backend.Open(ctx, b, p)
	return &moduleEnvironment{env, m, b.Profile.Name}, err
}

// Tools are none: it has no directories.
func (e *moduleEnvironment) Tools(context.Context) ([]tool.Description, error) { return nil, nil }

func (e *moduleEnvironment) RunModule(_ context.Context, r backends.ModuleRequest) (backends.ModuleResult, error) {
	module, err := os.ReadFile(r.Path)
	if err != nil {
		return backends.ModuleResult{}, err
	}
	var request struct {
		Action, Name string
		Arguments    json.RawMessage
	}
	if err := json.Unmarshal(r.Stdin, &request); err != nil {
		return backends.ModuleResult{}, err
	}
	m := e.backend
	m.mu.Lock()
	m.runs = append(m.runs, fmt.Sprintf("%s %s %s", e.profile, r.Mode, request.Action))
	fail := m.fail
	m.mu.Unlock()
	if request.Action == "list" {
		return backends.ModuleResult{Stdout: bytes.TrimPrefix(module, []byte(plugins.ModuleHead))}, nil
	}
	if fail != nil {
		return backends.ModuleResult{}, fail
	}
	said := fmt.Sprintf(`{"ok":true,"result":{"tool":%q,"profile":%q,"arguments":%s}}`, request.Name, e.profile, request.Arguments)
	return backends.ModuleResult{Stdout: []byte(said), FuelRemaining: 7}, nil
}

func (m *moduleBackend) ran() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs)
}

const modulesConfig = `{
	"execution_environments": {
		"overrides": {"plugins.sent": "other"},
		"profiles": {
			"pure": {"backend": "wasm"}, "other": {"backend": "wasm"},
			"box": {"backend": "docker", "image": "a"},
		},
	},
	"execution": {"retry_backoff": "1ms"},
}`

// newModulesRig is a rig whose services keep registered tools.
func newModulesRig(t *testing.T) (*rig, *moduleBackend) {
	t.Helper()
	r := newRig(t)
	m := &moduleBackend{Backend: r.world.backend(profile.WASM)}
	r.more = []backends.Backend{m}
	r.write(r.config, modulesConfig)
	var err error
	if r.plugins, err = plugins.Open(filepath.Join(r.dir, "plugins"), nil); err != nil {
		t.Fatal(err)
	}
	return r, m
}

// module writes a module with the tools; all take n, a number.
func (r *rig) module(tools ...string) string {
	r.t.Helper()
	var list []string
	for _, name := range tools {
		list = append(list, fmt.Sprintf(`{"name":%q,"description":"d","inputSchema":{"type":"object","properties":{"n":{"type":"number"}}}}`, name))
	}
	file := filepath.Join(r.t.TempDir(), "module.wasm")
	r.write(file, plugins.ModuleHead+`{"tools":[`+strings.Join(list, ",")+`]}`)
	return file
}

func (s *service) register(name, profile string, tools ...string) plugins.Plugin {
	s.t.Helper()
	p, err := s.RegisterTool(s.t.Context(), session.RegisterRequest{File: s.rig.module(tools...), Name: name, Profile: profile})
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// tools are a session's, by name, each once.
func (s *service) tools(id string) map[string]session.Tool {
	s.t.Helper()
	list, err := s.Tools(s.t.Context(), id)
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]session.Tool{}
	for _, d := range list {
		if _, twice := all[d.Name]; twice {
			s.t.Errorf("%s is listed twice", d.Name)
		}
		all[d.Name] = d
	}
	return all
}

// said is what a module said of its call.
func said(t *testing.T, r session.CallResult) (v struct{ Tool, Profile string }) {
	t.Helper()
	if r.IsError || json.Unmarshal(r.StructuredContent, &v) != nil {
		t.Fatalf("the result is %+v", r)
	}
	return v
}

// A registered tool is one of the session's, in the place of a built-in one of its
// name, and is called with checked arguments in a fresh instance.
func TestRegisteredTool(t *testing.T) {
	r, m := newModulesRig(t)
	s := r.start()
	s.register("mine", "", "count", "bash")
	v := s.open(session.OpenRequest{Workspace: r.folder})
	all := s.tools(v.ID)
	for _, name := range []string{"count", "bash"} {
		if d := all[name]; d.Group != tool.GroupPlugins || d.Profile != profile.Modules || !strings.Contains(string(d.InputSchema), "number") {
			t.Errorf("%s is listed as %+v", name, d)
		}
	}
	if all["read_file"].Profile != "local" {
		t.Errorf("read_file is listed as %+v", all["read_file"])
	}
	for _, name := range []string{"count", "bash"} {
		got := s.call(v.ID, name, `{"n":1}`)
		if what := said(t, got); what.Tool != name || what.Profile != profile.Modules {
			t.Errorf("%s: %+v", name, what)
		}
		if got.Backend != profile.WASM || got.Profile != profile.Modules || got.FuelRemaining == nil || *got.FuelRemaining != 7 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	before := len(m.ran())
	refused := s.call(v.ID, "count", `{"n":"one"}`)
	if text := refused.Content[0].String(); !refused.IsError || !strings.Contains(text, `at /n: type: one has type "string", want "number"`) {
		t.Errorf("a model reads %q", text)
	}
	if ran := m.ran(); len(ran) != before {
		t.Errorf("it was called all the same: %v", ran)
	}
	if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "count", Actor: tool.Actor{ID: "side", Kind: tool.ActorSideChat}}); err != nil {
		t.Error(err)
	}
	ran := m.ran()
	if last := ran[len(ran)-1]; last != profile.Modules+" read_only run" || ran[0] != profile.Modules+" read_only list" {
		t.Errorf("it was run as %v", ran)
	}
	m.fail = &tool.Error{Kind: tool.GuestFailed, Reason: tool.OutOfFuel, Message: "out of fuel"}
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "count"})
	wantKind(t, err, tool.GuestFailed)
	if got := s.sink.executionsOf("count"); fmt.Sprint(got) != "[started count completed count started count completed count started count completed count started count failed count guestFailed]" {
		t.Errorf("events %v", got)
	}
}

// executionsOf are what the sink heard of a tool, in order.
func (r *recorder) executionsOf(name string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.executions {
		if strings.Contains(e, " "+name) {
			all = append(all, e)
		}
	}
	return all
}

// Where a plugin runs: on its own profile, else where an override sends it, else in
// the session's environment, else on the built-in profile.
func TestWherePluginsRun(t *testing.T) {
	r, _ := newModulesRig(t)
	s := r.start()
	s.register("own", "pure", "own_tool")
	s.register("rest", "", "sent", "free")
	for _, on := range []string{"local", "box", "pure"} {
		free := profile.Modules
		if on == "pure" {
			free = "pure"
		}
		v := s.open(session.OpenRequest{Workspace: r.folder, Profile: on})
		for name, want := range map[string]string{"own_tool": "pure", "sent": "other", "free": free} {
			if got := s.call(v.ID, name, `{}`); said(t, got).Profile != want || got.Profile != want {
				t.Errorf("session on %s: %s ran on %s", on, name, got.Profile)
			}
			if got := s.tools(v.ID)[name].Profile; got != want {
				t.Errorf("session on %s: %s is listed on %s", on, name, got)
			}
		}
	}
	r.write(r.config, strings.Replace(modulesConfig, `"plugins.sent": "other"`, `"plugins.*": "box"`, 1))
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.ConfigInvalid)
	if !strings.Contains(err.Error(), `"box"`) {
		t.Error(err)
	}
	// One for all tools need not be for wasm.
	r.write(r.config, strings.Replace(modulesConfig, `"plugins.sent": "other"`, `"*": "box"`, 1))
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if got := s.call(v.ID, "free", `{}`); said(t, got).Profile != profile.Modules {
		t.Errorf("it ran on %s", got.Profile)
	}
}

// A session keeps the tools that it was opened with, whatever is registered later.
func TestPluginsAreKept(t *testing.T) {
	r, _ := newModulesRig(t)
	s := r.start()
	p := s.register("mine", "", "count", "bash")
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if err := s.RemoveTool(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	s.register("later", "", "later")
	s.stop()

	s = r.start()
	if _, resumed, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); err != nil || !resumed {
		t.Fatal(err)
	}
	if all := s.tools(v.ID); all["count"].Profile == "" || all["later"].Name != "" {
		t.Errorf("the old session has %v", all)
	}
	said(t, s.call(v.ID, "count", `{}`))
	fork, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	said(t, s.call(fork.ID, "count", `{}`))
	n := s.open(session.OpenRequest{Workspace: r.folder})
	if all := s.tools(n.ID); all["count"].Name != "" || all["later"].Name == "" || all["bash"].Group != tool.GroupShell {
		t.Errorf("the new session has %v", all)
	}
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: n.ID, Name: "count"})
	wantKind(t, err, tool.ToolNotFound)

	// What is gone is said, and no built-in tool takes its place.
	s.stop()
	if err := os.Remove(r.plugins.Path(p.SHA256)); err != nil {
		t.Fatal(err)
	}
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	for _, name := range []string{"count", "bash"} {
		_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: name})
		wantKind(t, err, tool.ConfigInvalid)
		if !strings.Contains(err.Error(), p.SHA256) || !strings.Contains(err.Error(), "mine") {
			t.Error(err)
		}
		if d := s.tools(v.ID)[name]; d.Group != tool.GroupPlugins || !strings.Contains(d.Description.Description, "cannot be called any more") {
			t.Errorf("it is listed as %+v", d)
		}
	}
}

// A module goes with the last session that has it, once it is an hour old.
func TestModulesGo(t *testing.T) {
	r, _ := newModulesRig(t)
	later := time.Duration(0)
	var err error
	if r.plugins, err = plugins.Open(filepath.Join(r.dir, "plugins"), func() time.Time { return time.Now().Add(later) }); err != nil {
		t.Fatal(err)
	}
	s := r.start()
	p := s.register("mine", "", "count")
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if err := s.RemoveTool(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	later = 2 * time.Hour
	s.register("other", "", "other")
	n := s.open(session.OpenRequest{Workspace: r.folder})
	if list, err := s.RegisteredTools(t.Context()); err != nil || len(list) != 1 {
		t.Fatal(list, err)
	} else if info, err := os.Stat(r.plugins.Path(list[0].SHA256)); err != nil || time.Until(info.ModTime()) < time.Hour {
		t.Errorf("a module that a session was just opened with is of %v, %v", info.ModTime(), err)
	}
	if _, err := s.Prune(t.Context(), session.PruneRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.plugins.Blob(p.SHA256); err != nil {
		t.Fatalf("it went while a session has it: %v", err)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.plugins.Blob(p.SHA256); err == nil {
		t.Error("it stays when no session has it")
	}
	if got := s.call(n.ID, "other", `{}`); got.IsError {
		t.Errorf("%+v", got)
	}
}

func TestConfiguredPlugins(t *testing.T) {
	r, _ := newModulesRig(t)
	s := r.start()
	registered := s.register("mine", "", "count")
	with := func(members string) {
		r.write(r.config, strings.Replace(modulesConfig, `"execution":`, `"tools": {"plugins": [`+members+`]}, "execution":`, 1))
	}
	with(fmt.Sprintf(`{"name": "by-path", "wasm": %q, "profile": "pure"}, {"name": "by-hash", "wasm": "sha256:%s"}`, r.module("other"), registered.SHA256))
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.ConfigInvalid) // both have count
	if !strings.HasPrefix(err.Error(), `"`) {
		t.Errorf("%q does not begin with their names", err)
	}
	if !strings.Contains(err.Error(), "count") {
		t.Error(err)
	}
	if err := s.RemoveTool(t.Context(), "mine"); err != nil {
		t.Fatal(err)
	}
	v := s.open(session.OpenRequest{Workspace: r.folder})
	for name, want := range map[string]string{"other": "pure", "count": profile.Modules} {
		if got := said(t, s.call(v.ID, name, `{}`)); got.Profile != want {
			t.Errorf("%s ran on %s", name, got.Profile)
		}
	}
	list, err := s.RegisteredTools(t.Context())
	if err != nil || len(list) != 2 || !list[0].Configured || list[0].Problem != nil || len(list[1].Tools) != 1 {
		t.Errorf("listed %+v, %v", list, err)
	}
	_, err = s.RegisterTool(t.Context(), session.RegisterRequest{File: r.module("x"), Name: "by-path"})
	wantKind(t, err, tool.InvalidParams)
	for name, members := range map[string]string{
		"no file":   `{"name": "x", "wasm": "/nowhere/x.wasm"}`,
		"no module": fmt.Sprintf(`{"name": "x", "wasm": %q}`, r.config),
		"no hash":   `{"name": "x", "wasm": "sha256:` + strings.Repeat("0", 64) + `"}`,
	} {
		with(members)
		_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
		wantKind(t, err, tool.ConfigInvalid)
		if !strings.Contains(err.Error(), "the tool x: ") {
			t.Errorf("%s: %v", name, err)
		}
		if list, err := s.RegisteredTools(t.Context()); err != nil || len(list) != 1 || list[0].Problem == nil {
			t.Errorf("%s: listed %+v, %v", name, list, err)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	r, _ := newModulesRig(t)
	s := r.start()
	for name, test := range map[string]struct {
		r    session.RegisterRequest
		kind tool.Kind
	}{
		"no profile":      {session.RegisterRequest{File: r.module("a"), Name: "a", Profile: "pur"}, tool.ProfileNotFound},
		"another profile": {session.RegisterRequest{File: r.module("a"), Name: "a", Profile: "box"}, tool.InvalidParams},
		"no module":       {session.RegisterRequest{File: r.config, Name: "a"}, tool.InvalidParams},
		"no name":         {session.RegisterRequest{File: r.module("a")}, tool.InvalidParams},
		"no tools":        {session.RegisterRequest{File: r.module(), Name: "a"}, tool.InvalidParams},
	} {
		if _, err := s.RegisterTool(t.Context(), test.r); tool.KindOf(err) != test.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantKind(t, s.RemoveTool(t.Context(), "nothing"), tool.ToolNotFound)
	if list, err := s.RegisteredTools(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	// Nothing is left of the environments that modules were asked in.
	if left, err := filepath.Glob(filepath.Join(r.dir, "run", "list-*")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// The guard takes a module's tool for what it is, and for the built-in tool that it
// stands for.
func TestGuardOfPlugins(t *testing.T) {
	for denied, want := range map[string]bool{"plugins.*": true, "plugins.bash": true, "shell.*": true, "file.*": false} {
		r, m := newModulesRig(t)
		r.write(r.config, strings.Replace(modulesConfig, `"execution":`, `"guard": {"rules": [{"tools": ["`+denied+`"], "action": "deny"}]}, "execution":`, 1))
		s := r.start()
		s.register("mine", "", "bash")
		v := s.open(session.OpenRequest{Workspace: r.folder})
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash"})
		if is := tool.KindOf(err) == tool.Denied && err != nil; is != want {
			t.Errorf("denying %s: %v", denied, err)
		}
		if ran := slices.ContainsFunc(m.ran(), func(s string) bool { return strings.HasSuffix(s, "run") }); ran == want {
			t.Errorf("denying %s: it ran %v", denied, m.ran())
		}
	}
}

// packBackend is a double of docker whose environments have the tools of packs: each
// pack has one of its own name.
type packBackend struct {
	backends.Backend
	schema string
	fail   error
}

type packEnvironment struct {
	backends.Environment
	b packBackend
	p []tool.Pack
}

func (p *packBackend) Open(ctx context.Context, b backends.Binding, progress backends.Progress) (backends.Environment, error) {
	if p.fail != nil && len(b.Packs) > 0 {
		return nil, p.fail
	}
	env, err := p.Backend.Open(ctx, b, progress)
	return &packEnvironment{env, *p, b.Packs}, err
}

func (e *packEnvironment) Tools(ctx context.Context) ([]tool.Description, error) {
	list, err := e.Environment.Tools(ctx)
	for _, p := range e.p {
		list = slices.DeleteFunc(list, func(d tool.Description) bool { return d.Name == p.Name })
		list = append(list, tool.Description{Name: p.Name, Group: tool.GroupPlugins, Description: "d", InputSchema: json.RawMessage(e.b.schema)})
	}
	return list, err
}

func (e *packEnvironment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	if slices.ContainsFunc(e.p, func(p tool.Pack) bool { return p.Name == r.Name }) {
		return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: "of a pack"}}}, nil
	}
	return e.Environment.Call(ctx, r)
}

const packsConfig = `{
	"execution_environments": {
		"default": "box", "overrides": {"plugins.*": "pure"},
		"profiles": {"pure": {"backend": "wasm"}, "box": {"backend": "docker", "image": "a"}, "plain": {"backend": "docker", "image": "b"}},
	},
	"tools": {"packs": [
		{"name": "bash", "command": "bash", "profiles": ["box"]},
		{"name": "lint", "command": ["sh", "${source}"], "source": "SOURCE", "profiles": ["box", "local"]},
	]},
	"execution": {"retry_backoff": "1ms"},
}`

func newPacksRig(t *testing.T) (*rig, *packBackend) {
	t.Helper()
	r, _ := newModulesRig(t)
	p := &packBackend{Backend: r.world.backend(profile.Docker), schema: `{"type":"object","required":["x"]}`}
	r.dockerBackend = p
	source := filepath.Join(t.TempDir(), "lint.sh")
	r.write(source, "echo\n")
	r.write(r.config, strings.Replace(packsConfig, "SOURCE", source, 1))
	return r, p
}

// The tools of packs are those of the place where the packs are, whatever overrides
// say of plugins, and stand for built-in ones.
func TestPacks(t *testing.T) {
	r, _ := newPacksRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	b := r.world.opened()[0]
	if len(b.Packs) != 2 || b.Packs[0].SHA256 != "" || len(b.Packs[1].SHA256) != 64 || fmt.Sprint(b.Packs[1].Command) != "[sh ${source}]" {
		t.Fatalf("packs %+v", b.Packs)
	}
	if text, err := os.ReadFile(b.Packs[1].Source); err != nil || string(text) != "echo\n" {
		t.Errorf("its source is %q, %v", text, err)
	}
	all := s.tools(v.ID)
	for _, name := range []string{"bash", "lint"} {
		if all[name].Group != tool.GroupPlugins || all[name].Profile != "box" {
			t.Errorf("%s is listed as %+v", name, all[name])
		}
		got := s.call(v.ID, name, `{"x":1}`)
		if got.Content[0].String() != "of a pack" || got.Profile != "box" {
			t.Errorf("%s: %+v", name, got)
		}
		if refused := s.call(v.ID, name, `{}`); !refused.IsError || !strings.Contains(refused.Content[0].String(), `missing properties: ["x"]`) {
			t.Errorf("%s: %+v", name, refused)
		}
	}
	// What was there when the session was made stays its own.
	source := b.Packs[1].Source
	s.stop()
	r.write(r.config, modulesConfig)
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	opened := r.world.opened()
	if b := opened[len(opened)-1]; len(b.Packs) != 2 || b.Packs[1].Source != source {
		t.Errorf("packs %+v", b.Packs)
	}
	// A session on a profile that has none has none.
	n := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	if all := s.tools(n.ID); all["lint"].Name != "" || all["bash"].Group != tool.GroupShell {
		t.Errorf("it has %v", all)
	}
}

// A pack's tool stands for a built-in one wherever that goes, and is listed once.
func TestPackHidesElsewhere(t *testing.T) {
	r, _ := newPacksRig(t)
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer(
		`"plugins.*": "pure"`, `"shell.*": "plain"`,
		`"image": "a"`, `"image": "a", "host_workspace": "${workspaceFolder}"`, `"image": "b"`, `"image": "b", "host_workspace": "${workspaceFolder}"`,
	).Replace(string(text))
	r.write(r.config, changed)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if d := s.tools(v.ID)["bash"]; d.Profile != "box" || d.Group != tool.GroupPlugins {
		t.Errorf("it is listed as %+v", d)
	}
	if got := s.call(v.ID, "bash", `{"x":1}`); got.Content[0].String() != "of a pack" || got.Profile != "box" {
		t.Errorf("%+v", got)
	}
}

// The guard learns what packs have before the first call runs.
func TestGuardOfPacks(t *testing.T) {
	r, _ := newPacksRig(t)
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	r.write(r.config, strings.Replace(string(text), `"execution":`, `"guard": {"rules": [{"tools": ["plugins.*"], "action": "deny"}]}, "execution":`, 1))
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Deferred: true})
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: json.RawMessage(`{"x":1}`)})
	wantKind(t, err, tool.Denied)
}

// A module's tool stands for a pack's.
func TestPluginHidesPack(t *testing.T) {
	r, _ := newPacksRig(t)
	s := r.start()
	s.register("mine", "", "lint")
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if got := said(t, s.call(v.ID, "lint", `{"n":1}`)); got.Profile != "pure" {
		t.Errorf("%+v", got)
	}
	if d := s.tools(v.ID)["lint"]; d.Profile != "pure" {
		t.Errorf("it is listed as %+v", d)
	}
}

// A pack that cannot be had stops the opening, and nothing is left.
func TestPacksThatFail(t *testing.T) {
	for name, change := range map[string]func(r *rig, p *packBackend){
		"not listed": func(_ *rig, p *packBackend) {
			p.fail = tool.Errorf(tool.Unsupported, `the pack "lint" did not list its tools`)
		},
		"ignored":  func(r *rig, p *packBackend) { r.dockerBackend = p.Backend },
		"a schema": func(_ *rig, p *packBackend) { p.schema = `{"type":"object","$ref":"http://example.org/"}` },
		"no source": func(r *rig, _ *packBackend) {
			r.write(r.config, strings.Replace(packsConfig, "SOURCE", "/nowhere/lint.sh", 1))
		},
		"a directory": func(r *rig, _ *packBackend) { r.write(r.config, strings.Replace(packsConfig, "SOURCE", r.dir, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			r, p := newPacksRig(t)
			change(r, p)
			s := r.start()
			_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
			var e *tool.Error
			if !errors.As(err, &e) || e.Kind != tool.Unsupported && e.Kind != tool.ConfigInvalid {
				t.Fatalf("%v", err)
			}
			if !strings.Contains(e.Message, "lint") && !strings.Contains(e.Message, `pack "bash"`) {
				t.Errorf("%q does not name the pack", e.Message)
			}
			if list, err := s.List(t.Context(), session.Filter{}); err != nil || len(list) != 0 {
				t.Errorf("left %+v, %v", list, err)
			}
			for _, b := range r.world.opened() {
				if r.world.has(b.Environment) {
					t.Errorf("the environment of %s is left", b.Profile.Name)
				}
			}
		})
	}
}

// TestPacksThatFailLater: what runs in a session stays when it is opened again and its
// packs cannot be had.
func TestPacksThatFailLater(t *testing.T) {
	r, p := newPacksRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	started, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Argv: []string{"sleep", "1"}})
	if err != nil {
		t.Fatal(err)
	}
	s.stop()
	schema := p.schema
	p.schema = `{"type":"object","$ref":"http://example.org/"}`
	s = r.start()
	if _, _, err := s.Open(t.Context(), session.OpenRequest{SessionID: v.ID}, nil); tool.KindOf(err) != tool.Unsupported {
		t.Fatalf("%v", err)
	}
	s.stop()
	p.schema = schema
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if got, err := s.GetProcess(t.Context(), v.ID, started.ID); err != nil || got.Status != session.ProcessRunning {
		t.Errorf("the process is %s, %v", got.Status, err)
	}
}
