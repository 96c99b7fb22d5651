package session_test

import (
	"context"
	"encoding/json"
	"errors"
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
)

// guarded is a rig whose configuration has this guard.
func guarded(t *testing.T, guard string) *rig {
	t.Helper()
	r := newRig(t)
	r.guard(guard)
	return r
}

func (r *rig) guard(guard string) {
	r.write(r.config, strings.TrimSuffix(strings.TrimSpace(defaultConfig), "}")+`"guard": `+guard+`}`)
}

// Everything that runs passes the guard, before its environment is opened, and what
// it refuses has the two events of every call.
func TestGuardSeesEverything(t *testing.T) {
	r := guarded(t, `{"rules": [
		{"tools": ["code.run", "file.read_file"], "action": "allow"},
		{"tools": ["plugins.own"], "match": {"a": "fine"}, "action": "allow"},
		{"tools": ["*"], "match": {"command": "ls"}, "action": "allow"},
		{"tools": ["*"], "action": "deny", "reason": "this is a test"}
	]}`)
	r.programs = &programs{}
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box", Deferred: true})
	calls := map[string]func() error{
		"bash": func() error {
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: []byte(`{"command":"rm x"}`)})
			return err
		},
		"git": func() error {
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "git", Arguments: []byte(`{"subcommand":"log"}`)})
			return err
		},
		"own": func() error {
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "own", Arguments: []byte(`{"a":"bad"}`)})
			return err
		},
		"process.start": func() error {
			_, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "ls; rm x"})
			return err
		},
		"shell.job": func() error {
			_, err := s.RunJob(t.Context(), session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"rm", "x"}}})
			return err
		},
	}
	for name, call := range calls {
		before := len(s.sink.executed())
		err := call()
		wantKind(t, err, tool.Denied)
		if e, ok := errors.AsType[*tool.Error](err); !ok || !strings.Contains(e.Message, "this is a test") || e.Hint == "" || e.Path == "" {
			t.Errorf("%s: %+v", name, err)
		}
		if want := []string{"started " + name, "failed " + name + " denied"}; !slices.Equal(s.sink.executed()[before:], want) {
			t.Errorf("%s: events %v", name, s.sink.executed()[before:])
		}
	}
	if opens := r.world.opened(); len(opens) != 0 {
		t.Errorf("%d environments were opened", len(opens))
	}

	// What rules allow runs, and the calls of a program are judged one by one.
	if _, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "ls -l"}); err != nil {
		t.Error(err)
	}
	out, err := s.RunCode(t.Context(), session.CodeRequest{
		SessionID: v.ID,
		Code:      `[{"Name":"bash","Arguments":{"command":"ls"}},{"Name":"bash","Arguments":{"command":"rm x"}},{"Name":"mine","Arguments":{}},{"Name":"own","Arguments":{"a":"fine"}}]`,
		Offered:   append(offered("mine"), offered("own")...),
		Invoke: func(_ context.Context, name string, _ json.RawMessage) (tool.Result, error) {
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: name}}}, nil
		},
	})
	if err != nil || !slices.Equal(out.Logs[1:], []string{"denied", "denied", "own"}) {
		t.Errorf("%q, %v", out.Logs, err)
	}
}

// A rule about the shell is one about processes that are started beside it.
func TestProcessesAreOfTheShell(t *testing.T) {
	r := guarded(t, `{"rules": [{"tools": ["process.start"], "match": {"command": "sleep"}, "action": "allow"}, {"tools": ["shell.*"], "action": "deny"}]}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	_, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Argv: []string{"ls"}})
	wantKind(t, err, tool.Denied)
	if _, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Argv: []string{"sleep", "1"}}); err != nil {
		t.Error(err)
	}
}

// The guard stays what it was when the session was made, also for its forks; what a
// project adds cannot take anything away.
func TestGuardIsKept(t *testing.T) {
	const denyGit = `{"rules": [{"tools": ["git.*"], "action": "deny"}]}`
	r := guarded(t, denyGit)
	r.write(filepath.Join(r.folder, ".caisson.json"), `{"guard": {"rules": [{"tools": ["git.*"], "action": "allow"}, {"tools": ["search.*"], "action": "deny"}]}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	check := func(s *service, id string) {
		t.Helper()
		for _, name := range []string{"git", "grep"} {
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: id, Name: name})
			wantKind(t, err, tool.Denied)
		}
		s.call(id, "bash", `{"command":"ls"}`)
	}
	check(s, v.ID)
	fork, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	check(s, fork.ID)
	r.write(r.config, defaultConfig)
	r.write(filepath.Join(r.folder, ".caisson.json"), `{}`)
	s.stop()
	s = r.start()
	check(s, s.open(session.OpenRequest{SessionID: v.ID}).ID)
	other := s.open(session.OpenRequest{Workspace: r.folder})
	s.call(other.ID, "git", `{"subcommand":"log"}`)
}

// A guard that was saved and cannot be read, or not in all of its parts, admits
// nothing.
func TestBrokenGuard(t *testing.T) {
	for name, test := range map[string]struct{ file, old, text string }{
		"what was used":                {"used.json", "{", "{ torn"},
		"a member of a later build":    {"binding.json", `"max_calls": 5`, `"max_calls": 5, "max_cost": 1`},
		"an action of a later build":   {"binding.json", `"action": "deny"`, `"action": "delay"`},
		"a condition of a later build": {"binding.json", `"action": "deny"`, `"action": "deny", "hours": "9-17"`},
	} {
		t.Run(name, func(t *testing.T) {
			r := guarded(t, `{"budget": {"max_calls": 5}, "rules": [{"tools": ["git.*"], "action": "deny"}]}`)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
			s.call(v.ID, "bash", `{"command":"ls"}`)
			s.stop()
			file := filepath.Join(r.dir, "state", "sessions", v.ID, test.file)
			raw, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(raw), test.old) {
				t.Fatalf("%s, %v", raw, err)
			}
			r.write(file, strings.Replace(string(raw), test.old, test.text, 1))
			s = r.start()
			s.open(session.OpenRequest{SessionID: v.ID})
			_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: []byte(`{"command":"ls"}`)})
			if kind := tool.KindOf(err); kind != tool.Internal && kind != tool.ConfigInvalid {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestRateOfSession(t *testing.T) {
	now := time.Now()
	var mu sync.Mutex
	r := guarded(t, `{"rate": {"calls_per_minute": 30, "burst": 1}}`)
	r.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	s := r.start()
	v, other := s.open(session.OpenRequest{Workspace: r.folder}), s.open(session.OpenRequest{Workspace: r.folder})
	s.call(v.ID, "bash", `{"command":"ls"}`)
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash"})
	wantKind(t, err, tool.RateLimited)
	if e, ok := errors.AsType[*tool.Error](err); !ok || !e.Retryable || !strings.Contains(e.Message, "retry after 2 s") {
		t.Errorf("got %+v", err)
	}
	s.call(other.ID, "bash", `{"command":"ls"}`) // has its own
	mu.Lock()
	now = now.Add(2 * time.Second)
	mu.Unlock()
	s.call(v.ID, "bash", `{"command":"ls"}`)
}

// A budget is the session's for good: closing, resuming and a killed service give it
// no new one.
func TestBudgetOfSession(t *testing.T) {
	r := guarded(t, `{"budget": {"max_calls": 4, "max_output_bytes": 100000}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	s.call(v.ID, "bash", `{"command":"ls"}`)
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	s.open(session.OpenRequest{SessionID: v.ID})
	s.call(v.ID, "bash", `{"command":"ls"}`)
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	s.call(v.ID, "bash", `{"command":"ls"}`)
	s.call(v.ID, "bash", `{"command":"ls"}`)
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash"})
	wantKind(t, err, tool.BudgetExhausted)
	raw, err := os.ReadFile(filepath.Join(r.dir, "state", "sessions", v.ID, "used.json"))
	if err != nil {
		t.Fatal(err)
	}
	var used struct {
		Calls       int64 `json:"calls"`
		OutputBytes int64 `json:"output_bytes"`
	}
	// What was used within the second before is not on the disk yet.
	if err := json.Unmarshal(raw, &used); err != nil || used.Calls < 3 || used.OutputBytes == 0 {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := s.Delete(t.Context(), v.ID, false); err != nil {
		t.Fatal(err)
	}
}

// What a burst has used is saved a second after it, though nothing follows: a service that
// is killed then forgets none of it. The clock stands still, so that no call finds the
// record old.
func TestUsedIsSavedInQuiet(t *testing.T) {
	r := guarded(t, `{"budget": {"max_calls": 10}, "rate": {"calls_per_minute": 1, "burst": 10}}`)
	now := time.Now()
	r.now = func() time.Time { return now }
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	for range 5 {
		s.call(v.ID, "bash", `{}`)
	}
	var used struct {
		Calls int64 `json:"calls"`
		Rates []struct {
			Calls float64 `json:"calls"`
		} `json:"rates"`
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); ; {
		raw, err := os.ReadFile(filepath.Join(r.dir, "state", "sessions", v.ID, "used.json"))
		if err == nil {
			err = json.Unmarshal(raw, &used)
		}
		if err != nil {
			t.Fatal(err)
		}
		if used.Calls == 5 && len(used.Rates) == 1 && used.Rates[0].Calls == 5 {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("saved is %s", raw)
		}
	}
}

// A rate is the session's for good, too: closing, resuming, a restarted service and a
// fork give it no call that time has not given back.
func TestRateLasts(t *testing.T) {
	r := guarded(t, `{"rate": {"calls_per_minute": 1, "burst": 3}}`)
	now := time.Now()
	var mu sync.Mutex
	r.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	limited := func(id string) {
		t.Helper()
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: id, Name: "bash"})
		wantKind(t, err, tool.RateLimited)
	}
	s.call(v.ID, "bash", `{}`)
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	s.open(session.OpenRequest{SessionID: v.ID})
	s.call(v.ID, "bash", `{}`)
	f := s.fork(session.ForkRequest{SessionID: v.ID})
	s.call(f.ID, "bash", `{}`)
	limited(f.ID)
	s.call(v.ID, "bash", `{}`)
	limited(v.ID)
	s.stop()
	s = r.start()
	for _, id := range []string{v.ID, f.ID} {
		s.open(session.OpenRequest{SessionID: id})
		limited(id)
	}
	// Of a session that is not open here what is saved counts.
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	limited(s.fork(session.ForkRequest{SessionID: v.ID}).ID)
	mu.Lock()
	now = now.Add(time.Minute)
	mu.Unlock()
	s.call(f.ID, "bash", `{}`)
	limited(f.ID)
}

// A fork has used what its parent had used when it was made, and neither uses the
// other's from then on.
func TestBudgetOfFork(t *testing.T) {
	r := guarded(t, `{"budget": {"max_calls": 3}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	exhausted := func(id string) {
		t.Helper()
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: id, Name: "bash"})
		wantKind(t, err, tool.BudgetExhausted)
	}
	s.call(v.ID, "bash", `{}`)
	s.call(v.ID, "bash", `{}`)
	f := s.fork(session.ForkRequest{SessionID: v.ID})
	s.call(f.ID, "bash", `{}`)
	exhausted(f.ID)
	s.call(v.ID, "bash", `{}`)
	exhausted(v.ID)
	exhausted(s.fork(session.ForkRequest{SessionID: v.ID}).ID)
	// One whose record cannot be read gives no fork a budget.
	s.stop()
	r.write(filepath.Join(r.dir, "state", "sessions", v.ID, "used.json"), "{")
	s = r.start()
	_, err := s.Fork(t.Context(), session.ForkRequest{SessionID: v.ID, NewSessionID: "none"}, nil)
	wantKind(t, err, tool.Internal)
	if _, err := os.Stat(filepath.Join(r.dir, "state", "sessions", "none")); !os.IsNotExist(err) {
		t.Errorf("what is left of the fork: %v", err)
	}
}

// A person is asked about what the call really is, and only where somebody can ask.
func TestConfirmation(t *testing.T) {
	r := guarded(t, `{"rules": [{"tools": ["*"], "match": {"command": "make"}, "action": "confirm", "reason": "slow"}], "confirm_timeout": "1ms"}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	var asked []session.Confirmation
	yes := func(_ context.Context, c session.Confirmation) (session.Decision, error) {
		asked = append(asked, c)
		return session.Decision{Allow: true}, nil
	}
	if _, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: []byte(`{"command":"make -j4"}`), CallID: "c1", Confirm: yes}); err != nil {
		t.Error(err)
	}
	if _, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Argv: []string{"make"}, CWD: "sub", Environment: map[string]string{"A": "b"}, Confirm: yes}); err != nil {
		t.Error(err)
	}
	if _, err := s.RunJob(t.Context(), session.JobRequest{SessionID: v.ID, Confirm: yes, Job: backends.JobRequest{
		Argv: []string{"make"}, Inputs: []backends.JobInput{{Path: "Makefile", Data: []byte("all:")}},
	}}); err != nil {
		t.Error(err)
	}
	if len(asked) != 3 {
		t.Fatalf("asked %+v", asked)
	}
	if a := asked[0]; a.SessionID != v.ID || a.CallID != "c1" || a.Tool != "bash" || string(a.Arguments) != `{"command":"make -j4"}` || !strings.Contains(a.Reason, "slow") {
		t.Errorf("asked %+v", a)
	}
	if a := asked[1]; a.Tool != "process.start" || string(a.Arguments) != `{"argv":["make"],"cwd":"sub","env":{"A":"b"}}` {
		t.Errorf("asked %+v, %s", a, a.Arguments)
	}
	if a := asked[2]; a.Tool != "shell.job" || !strings.Contains(string(a.Arguments), `"Makefile":{"bytes":4,"sha256":"`) {
		t.Errorf("asked %+v, %s", a, a.Arguments)
	}
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: []byte(`{"command":"make"}`)})
	wantKind(t, err, tool.Denied)
	never := func(ctx context.Context, _ session.Confirmation) (session.Decision, error) {
		<-ctx.Done()
		return session.Decision{Allow: true}, ctx.Err()
	}
	_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: []byte(`{"command":"make"}`), Confirm: never})
	wantKind(t, err, tool.Denied)
}

// What a person allows in one environment is asked about again in another, and the
// question says which.
func TestConfirmedWhere(t *testing.T) {
	r := guarded(t, `{"rules": [{"tools": ["shell.job"], "action": "confirm"}]}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	var asked []string
	yes := func(_ context.Context, c session.Confirmation) (session.Decision, error) {
		asked = append(asked, string(c.Arguments))
		return session.Decision{Allow: true, Remember: true}, nil
	}
	for _, c := range []session.Constraints{{}, {Timeout: time.Second}, {Profile: "local"}, {Image: "b"}, {}, {Profile: "local"}} {
		if _, err := s.job(session.JobRequest{SessionID: v.ID, Constraints: c, Confirm: yes}); err != nil {
			t.Error(err)
		}
	}
	want := []string{`{"argv":["true"]}`, `{"argv":["true"],"constraints":{"profile":"local"}}`, `{"argv":["true"],"constraints":{"image":"b"}}`}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
}

// A rule about a path holds by each name that the workspace has.
func TestGuardedByEveryName(t *testing.T) {
	r := guarded(t, `{"rules": [{"tools": ["file.*"], "match": {"path": "infra/**"}, "action": "deny"}]}`)
	s := r.start()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(r.folder, link); err != nil {
		t.Fatal(err)
	}
	v := s.open(session.OpenRequest{Workspace: link})
	for _, path := range []string{"infra/x", link + "/infra/x", v.Root + "/infra/x", "bytes:infra/x"} {
		raw, err := json.Marshal(map[string]string{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "read_file", Arguments: raw})
		wantKind(t, err, tool.Denied)
	}
}

// A session that ends takes its questions back.
func TestQuestionsEndWithTheSession(t *testing.T) {
	r := guarded(t, `{"rules": [{"tools": ["*"], "action": "confirm"}]}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	asked, done := make(chan struct{}), make(chan error)
	go func() {
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Confirm: func(ctx context.Context, _ session.Confirmation) (session.Decision, error) {
			close(asked)
			<-ctx.Done()
			return session.Decision{}, ctx.Err()
		}})
		done <- err
	}()
	<-asked
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Error(err)
	}
	wantKind(t, <-done, tool.Cancelled)
}

// A local profile's lists of commands hold for all that runs commands there, and for
// nothing elsewhere.
func TestCommandsOfLocalProfiles(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {
		"few": {"backend": "local", "allowed_commands": ["git *", "ls"]},
		"box": {"backend": "docker", "image": "a"}
	}}}`)
	s := r.start()
	for _, c := range []struct {
		profile, command string
		ok               bool
	}{
		{"local", "ls", true},
		{"local", "rm -rf ./build", true},
		{"local", "cd / && sudo rm -rf *", false},
		{"local", "dd if=/dev/zero of=x", false},
		{"local", "mkfs.ext4 /dev/sda1", false},
		{"few", "git status && ls", true},
		{"few", "git status | sort", false},
		{"few", "$x", false},
		{"box", "rm -rf /", true}, // a container is made to be thrown away
	} {
		v := s.open(session.OpenRequest{Workspace: r.folder, Profile: c.profile})
		arguments, err := json.Marshal(map[string]string{"command": c.command})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: arguments})
		_, started := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: c.command})
		for _, err := range []error{err, started} {
			if (err == nil) != c.ok || err != nil && tool.KindOf(err) != tool.Denied {
				t.Errorf("%s: %s: %v", c.profile, c.command, err)
			}
		}
	}
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "few"})
	s.call(v.ID, "write_file", `{"path":"a","content":"rm"}`)
	s.call(v.ID, "git", `{"subcommand":"log"}`)
	_, err := s.RunJob(t.Context(), session.JobRequest{SessionID: v.ID, Job: backends.JobRequest{Argv: []string{"make"}}})
	wantKind(t, err, tool.Denied)
}

// A job that runs on another profile than the session's is held to that one's lists.
func TestCommandsOfOtherProfiles(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {
		"few": {"backend": "local", "allowed_commands": ["ls"]},
		"box": {"backend": "docker", "image": "a"}
	}}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	for command, ok := range map[string]bool{"ls": true, "make": false} {
		_, err := s.RunJob(t.Context(), session.JobRequest{
			SessionID: v.ID, Job: backends.JobRequest{Argv: []string{command}}, Constraints: session.Constraints{Profile: "few"},
		})
		if (err == nil) != ok || err != nil && tool.KindOf(err) != tool.Denied {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// A pack's tool that stands for one that runs commands is held to the lists of the
// profile that the pack is on, wherever the other would run.
func TestListsOfPacks(t *testing.T) {
	r, _ := newPacksRig(t)
	r.localBackend = &packBackend{Backend: r.world.backend(profile.Local), schema: `{"type":"object"}`}
	r.write(r.config, `{
		"execution_environments": {
			"default": "few", "overrides": {"shell.*": "box"},
			"profiles": {
				"few": {"backend": "local", "allowed_commands": ["ls"]},
				"box": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}"},
			},
		},
		"tools": {"packs": [{"name": "bash", "command": "bash", "profiles": ["few"]}]},
	}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	if got := s.call(v.ID, "bash", `{"command":"ls"}`); got.Profile != "few" || got.Content[0].Text != "of a pack" {
		t.Errorf("%+v", got)
	}
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "bash", Arguments: json.RawMessage(`{"command":"make"}`)})
	wantKind(t, err, tool.Denied)
}

// A job is judged by the directory that it would run in, by the names which that has
// there, whatever the session's own environment calls it.
func TestJobsAreJudgedWhereTheyRun(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{
		"execution_environments": {"profiles": {
			"box": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}"},
		}},
		"guard": {"rules": [
			{"tools": ["shell.*"], "match": {"cwd": "infra/**"}, "action": "deny"},
			{"tools": ["shell.*"], "match": {"command": "rm /workspace/a"}, "action": "deny"},
		]},
	}`)
	s := r.start()
	for _, c := range []struct {
		own, other, cwd, command string
		denied                   bool
	}{
		{"local", "box", "infra", "ls", true},
		{"local", "box", "/workspace/infra/x", "ls", true},
		{"local", "box", "/workspace", "ls", false},
		{"local", "box", ".", "a", true},
		{"local", "", ".", "a", false},
		{"box", "local", r.folder + "/infra", "ls", true},
		{"box", "local", ".", "a", false},
		{"box", "", ".", "a", true},
	} {
		v := s.open(session.OpenRequest{Workspace: r.folder, Profile: c.own})
		_, err := s.job(session.JobRequest{
			SessionID: v.ID, Constraints: session.Constraints{Profile: c.other},
			Job: backends.JobRequest{CWD: c.cwd, Argv: []string{"rm", c.command}},
		})
		if (tool.KindOf(err) == tool.Denied) != c.denied || err != nil && !c.denied {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
