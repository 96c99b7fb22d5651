package docker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// perCallBinding is a binding to a profile as its defaults make it.
func perCallBinding(t testing.TB, b *Backend, image string) backends.Binding {
	binding := newBinding(t, b, image)
	binding.Profile.ContainerPolicy, binding.Profile.ReadOnlyRoot = profile.PolicyPerCall, true
	binding.Secrets.Token = b.random() + b.random()
	binding.Secrets.Environment = map[string]string{"GIVEN": "as given"}
	return binding
}

// callContainers are the names of the containers of calls.
func callContainers(t testing.TB, store string) []string {
	t.Helper()
	var names []string
	for _, c := range must(testEngine(t).containers(testContext(t), labelStore+"="+store, labelKind+"="+kindCall))(t) {
		names = append(names, c.Name)
	}
	return names
}

func TestPerCall(t *testing.T) {
	image := dockertest.UseShell(t)
	for _, user := range []string{"", dockertest.UserName} {
		t.Run("user "+user, func(t *testing.T) {
			b := newBackend(t, far(t))
			binding := perCallBinding(t, b, image)
			binding.Profile.User = user
			env := opened(t, b, binding)

			// The workspace lasts, and is one for commands and tools; all else is new.
			call(t, env, "write_file", map[string]any{"path": "given", "content": "from a tool\n"})
			first, code := bash(t, env, `cat given; echo made > made; echo $GIVEN
				echo x > $TMPDIR/left && echo wrote temporary files
				echo '#!/bin/sh' > $TMPDIR/p; chmod +x $TMPDIR/p; $TMPDIR/p && echo temporary programs run
				echo x > /left || echo the root is read-only
				cat /proc/sys/kernel/hostname > host; (sleep 600 & setsid sleep 600 &) >/dev/null 2>&1`)
			if want := "from a tool\nas given\nwrote temporary files\ntemporary programs run\nthe root is read-only\n"; first != want || code != 0 {
				t.Errorf("the first call: %d, %q", code, first)
			}
			if got := callContainers(t, binding.Store); len(got) > 0 {
				t.Errorf("left by a call: %q", got)
			}
			second, _ := bash(t, env, `cat made; test -e $TMPDIR/left || echo new
				for p in /proc/[0-9]*; do cat $p/cmdline 2>/dev/null | tr '\0' ' '; done | grep -c 'sleep 60[0]'
				test "$(cat host)" != "$(cat /proc/sys/kernel/hostname)" && echo another`)
			if second != "made\nnew\n0\nanother\n" {
				t.Errorf("the second call: %q", second)
			}
			if got := resultOf(t, call(t, env, "read_file", map[string]any{"path": "made"}))["content"]; got != "made\n" {
				t.Errorf("a tool reads %q", got)
			}
			if _, err := env.Call(t.Context(), tool.Request{Name: "git", Arguments: json.RawMessage(`{"subcommand":"init"}`)}); err != nil {
				t.Errorf("git: %v", err)
			}
			// What serves the files is out of reach: its directory is not there.
			if got, _ := bash(t, env, "ls /.caisson/state/run /.caisson/share 2>&1 | grep -c 'No such'"); got != "2\n" {
				t.Errorf("the other container's sockets: %q", got)
			}

			if err := errors.Join(env.Shutdown(t.Context()), b.Remove(t.Context(), binding)); err != nil {
				t.Fatal(err)
			}
			if got := left(t, binding.Store); len(got) > 0 {
				t.Errorf("left: %q", got)
			}
		})
	}
}

func resultOf(t testing.TB, r tool.Result) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(r.StructuredContent, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// Nothing outlives its call, and who asks for it is told what to choose.
func TestPerCallHasNoBackground(t *testing.T) {
	b := newBackend(t, far(t))
	env := opened(t, b, perCallBinding(t, b, dockertest.UseShell(t)))
	for name, arguments := range map[string]string{
		"process": `{"action":"list"}`, "bash": `{"command":"sleep 9","run_in_background":true}`,
	} {
		_, err := env.Call(t.Context(), tool.Request{Name: name, Arguments: json.RawMessage(arguments)})
		if tool.KindOf(err) != tool.Unsupported || !strings.Contains(tool.HintOf(err), "per_session") {
			t.Errorf("%s: %v (%s)", name, err, tool.HintOf(err))
		}
	}
	_, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "sleep 9"})
	if tool.KindOf(err) != tool.Unsupported || !strings.Contains(tool.HintOf(err), "per_session") {
		t.Errorf("process/start: %v (%s)", err, tool.HintOf(err))
	}
	if list, err := env.Processes().List(t.Context()); len(list) > 0 || err != nil {
		t.Errorf("process/list: %v, %v", list, err)
	}
	if _, err := env.Processes().Get(t.Context(), "p-x"); tool.KindOf(err) != tool.ProcessNotFound {
		t.Errorf("process/get: %v", err)
	}
	var names []string
	for _, d := range must(env.Tools(t.Context()))(t) {
		names = append(names, d.Name)
		if strings.Contains(d.Description+string(d.InputSchema), "background") {
			t.Errorf("%s promises a background", d.Name)
		}
	}
	if slices.Contains(names, "process") || !slices.Contains(names, "bash") || !slices.Contains(names, "git") {
		t.Errorf("the tools are %q", names)
	}
	result := resultOf(t, call(t, env, "bash", map[string]any{"command": "echo so far; sleep 60", "timeout_seconds": 1}))
	if result["timed_out"] != true || result["promoted_process_id"] != nil || result["stdout"] != "so far\n" {
		t.Errorf("after its own timeout: %v", result)
	}
}

// However a call ends, its container is gone when it has.
func TestPerCallEnds(t *testing.T) {
	b := newBackend(t, far(t))
	image := dockertest.UseShell(t)
	binding := perCallBinding(t, b, image)
	env := opened(t, b, binding)
	gone := func(t *testing.T, binding backends.Binding) {
		t.Helper()
		if got := callContainers(t, binding.Store); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		outcome := endless(ctx, t, env)
		cancel()
		if err := <-outcome; tool.KindOf(err) != tool.Cancelled {
			t.Errorf("got %v", err)
		}
		gone(t, binding)
	})
	t.Run("timeout", func(t *testing.T) {
		// Whether it is over before the command begins or after.
		_, err := env.Call(t.Context(), tool.Request{Name: "bash", Timeout: time.Second, Arguments: json.RawMessage(`{"command":"sleep 600"}`)})
		if tool.KindOf(err) != tool.Timeout || tool.HintOf(err) == "" {
			t.Errorf("got %v", err)
		}
		gone(t, binding)
	})
	t.Run("killed", func(t *testing.T) {
		outcome := endless(t.Context(), t, env)
		dockertest.Docker(t, "kill", callContainers(t, binding.Store)[0])
		if err := <-outcome; tool.KindOf(err) != tool.OutcomeUnknown {
			t.Errorf("got %v", err)
		}
		gone(t, binding)
		if got, _ := bash(t, env, "echo again"); got != "again\n" {
			t.Errorf("the next call: %q", got)
		}
	})
	t.Run("removed under it", func(t *testing.T) {
		outcome := endless(t.Context(), t, env)
		if err := b.Remove(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		if err := <-outcome; tool.KindOf(err) != tool.OutcomeUnknown {
			t.Errorf("got %v", err)
		}
		if got := left(t, binding.Store); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
		if _, err := env.Call(t.Context(), tool.Request{Name: "bash", Arguments: json.RawMessage(`{"command":"true"}`)}); tool.KindOf(err) != tool.EnvironmentLost {
			t.Errorf("a call afterwards: %v", err)
		}
	})
	t.Run("detached", func(t *testing.T) {
		binding := perCallBinding(t, b, image)
		env := opened(t, b, binding)
		outcome := endless(t.Context(), t, env)
		if err := env.Detach(t.Context()); err != nil {
			t.Error(err)
		}
		gone(t, binding)
		if err := <-outcome; tool.KindOf(err) != tool.Cancelled {
			t.Errorf("got %v", err)
		}
		if _, err := env.Call(t.Context(), tool.Request{Name: "bash", Arguments: json.RawMessage(`{"command":"true"}`)}); tool.KindOf(err) != tool.Cancelled {
			t.Errorf("a call afterwards: %v", err)
		}
	})
}

// endless runs a command that does not end, and returns once it has begun.
func endless(ctx context.Context, t *testing.T, env backends.Environment) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	begun := "begun-" + rand.Text()
	go func() {
		_, err := env.Call(ctx, tool.Request{Name: "bash", Arguments: json.RawMessage(fmt.Sprintf(`{"command":"trap '' TERM; echo > %s; sleep 600"}`, begun))})
		result <- err
	}()
	for deadline := time.Now().Add(removalTimeout); ; {
		if _, err := env.(backends.FileSystem).Stat(t.Context(), begun); err == nil {
			return result
		}
		if time.Now().After(deadline) {
			t.Fatal("the command did not begin")
		}
	}
}

// A connection to the engine that breaks midway leaves the outcome open, and the
// container ends by itself: its input has ended.
func TestPerCallConnectionBreaks(t *testing.T) {
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	way := newRoad(t)
	binding.Profile.DockerHost = way.host
	env := opened(t, b, binding)
	result := endless(t.Context(), t, env)
	way.cut()
	if err := <-result; tool.KindOf(err) != tool.OutcomeUnknown {
		t.Errorf("got %v", err)
	}
	for deadline := time.Now().Add(removalTimeout); len(callContainers(t, binding.Store)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("left: %q", callContainers(t, binding.Store))
		}
	}
	way.mend()
	if got, _ := bash(t, env, "cat begun-* && echo again"); got != "\nagain\n" {
		t.Errorf("the next call: %q", got)
	}
}

// Calls run at once, each by itself.
func TestPerCallMany(t *testing.T) {
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	env := opened(t, b, binding)
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			result, err := env.Call(t.Context(), tool.Request{Name: "bash", Arguments: json.RawMessage(fmt.Sprintf(`{"command":"echo %d > f%d; cat f%d"}`, i, i, i))})
			if err != nil || resultOf(t, result)["stdout"] != fmt.Sprintf("%d\n", i) {
				t.Errorf("%d: %v %v", i, result, err)
			}
		})
	}
	wait.Wait()
	if got, _ := bash(t, env, "cat f0 f1 f2 f3"); got != "0\n1\n2\n3\n" {
		t.Errorf("the files hold %q", got)
	}
}

func TestPerCallContainer(t *testing.T) {
	b := newBackend(t, far(t))
	folder := privateDir(t)
	write(t, filepath.Join(folder, "given"), "from the host\n")
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	binding.WorkspaceFolder, binding.Profile.HostWorkspace = folder, profile.WorkspaceFolder
	p := &binding.Profile
	p.CPUs, p.Memory, p.PidsLimit = 0.5, 256<<20, 100
	env := opened(t, b, binding)
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, err := env.Call(ctx, tool.Request{Name: "bash", Arguments: json.RawMessage(`{"command":"cat given > begun; sleep 600"}`)})
		done <- err
	}()
	for deadline := time.Now().Add(removalTimeout); ; {
		if content, err := os.ReadFile(filepath.Join(folder, "begun")); err == nil && string(content) == "from the host\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the command did not begin")
		}
	}
	names := callContainers(t, binding.Store)
	if len(names) != 1 || !strings.HasPrefix(names[0], binding.Environment+"-") {
		t.Fatalf("the containers are %q", names)
	}
	var found []struct {
		Config     struct{ Labels map[string]string }
		HostConfig struct {
			AutoRemove, ReadonlyRootfs  bool
			NanoCpus, Memory, PidsLimit int64
			NetworkMode                 string
			CapDrop                     []string
			LogConfig                   struct{ Type string }
		}
		Mounts []struct {
			Destination, Type string
			RW                bool
		}
	}
	text := inspected(t, names[0], &found)
	c, labels := found[0].HostConfig, found[0].Config.Labels
	if !c.AutoRemove || !c.ReadonlyRootfs || c.NanoCpus != 5e8 || c.Memory != 256<<20 || c.PidsLimit != 100 || c.NetworkMode != "none" || c.LogConfig.Type != "none" {
		t.Errorf("%+v", c)
	}
	if labels[labelStore] != binding.Store || labels[labelEnvironment] != binding.Environment || !ownerOf(labels).isSelf() {
		t.Errorf("the labels are %v", labels)
	}
	if strings.Contains(text, "as given") {
		t.Error("docker inspect shows a variable's value")
	}
	for _, m := range found[0].Mounts {
		if m.RW != (m.Destination == "/workspace") {
			t.Errorf("%+v", m)
		}
	}
	cancel()
	<-done
}

func (o owner) isSelf() bool { return o == self() }

// A call's container whose service was killed and which did not end is pruned,
// while the environment is one that the store knows; and with the environment,
// should somebody remove that first.
func TestPerCallPrune(t *testing.T) {
	dead := newBackend(t, far(t))
	binding := perCallBinding(t, dead, bare(t))
	env := opened(t, dead, binding)
	dead.owner = deadOwner(t)
	h := &callHost{host: env.(*perCall).host}
	if err := h.Create(t.Context(), binding, nil); err != nil {
		t.Fatal(err)
	}
	defer h.hangUp()
	living := newBackend(t, far(t))
	options := backends.PruneOptions{Store: binding.Store, Live: map[string]bool{binding.Environment: true}, DryRun: true}
	for range 2 {
		found := must(living.prune(t.Context(), h.engine, options, time.Now()))(t)
		if len(found) != 1 || !strings.HasPrefix(found[0].ID, binding.Environment+"-") || found[0].Session != binding.Session {
			t.Errorf("dry run %v: %+v", options.DryRun, found)
		}
		if got := len(callContainers(t, binding.Store)) > 0; got != options.DryRun {
			t.Errorf("dry run %v: it is there: %v", options.DryRun, got)
		}
		options.DryRun = false
	}
	if _, err := h.engine.container(t.Context(), binding.Environment); err != nil {
		t.Errorf("the workspace is gone: %v", err)
	}
	if err := h.Create(t.Context(), binding, nil); err != nil {
		t.Fatal(err)
	}
	defer h.hangUp()
	if err := living.Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if got := left(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

// Variables that are to be forwarded and could not be taken stop a command, and
// nothing else.
func TestPerCallWithoutVariables(t *testing.T) {
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	binding.Profile.ForwardEnv = []string{"TOKEN"}
	binding.Secrets.Environment = nil
	env := opened(t, b, binding)
	call(t, env, "write_file", map[string]any{"path": "f", "content": "x"})
	_, err := env.Call(t.Context(), tool.Request{Name: "bash", Arguments: json.RawMessage(`{"command":"true"}`)})
	if tool.KindOf(err) != tool.ConfigInvalid || !strings.Contains(tool.HintOf(err), "TOKEN") {
		t.Errorf("got %v (%s)", err, tool.HintOf(err))
	}
}

// A call from nothing to nothing, beside BenchmarkDockerRun.
func BenchmarkPerCall(b *testing.B) {
	backend := newBackend(b, far(b))
	env := opened(b, backend, perCallBinding(b, backend, dockertest.UseShell(b)))
	for b.Loop() {
		call(b, env, "bash", map[string]any{"command": "true"})
	}
}

// A job has a container too; what it left is there when that is gone, once.
func TestPerCallJob(t *testing.T) {
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	env := opened(t, b, binding)
	job := backends.JobRequest{
		ID: "j", Inputs: []backends.JobInput{{Path: "tool", Data: []byte("#!/bin/sh\necho a program\n")}},
		Script: &backends.JobScript{Interpreter: "sh", Source: "./tool; pwd; echo one > one; mkdir d; echo two > d/two; (setsid sleep 600 &)\n"},
	}
	began := time.Now()
	got, err := env.(backends.JobRunner).RunJob(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	whole := time.Since(began) // more than a shell needs, however busy the machine is
	if !strings.HasPrefix(string(got.Stdout), "a program\n") || got.ExitCode != 0 || len(got.Files) != 2 {
		t.Fatalf("the job came to %+v", got)
	}
	if left := callContainers(t, binding.Store); len(left) > 0 {
		t.Errorf("left by a job: %q", left)
	}
	for path, want := range map[string]string{"one": "one\n", "d/two": "two\n"} {
		f := got.Files[slices.IndexFunc(got.Files, func(f backends.JobFile) bool { return f.Path == path })]
		content := must(env.Export(t.Context(), f.Token))(t)
		data, err := io.ReadAll(content)
		if err := errors.Join(err, content.Close()); err != nil || string(data) != want || f.Size != int64(len(want)) {
			t.Errorf("%s is %q, %v", path, data, err)
		}
		if _, err := env.Export(t.Context(), f.Token); tool.KindOf(err) != tool.ArtifactNotFound {
			t.Errorf("%s comes twice: %v", path, err)
		}
	}
	job = backends.JobRequest{Argv: []string{"sh", "-c", "echo so far; echo kept > kept; sleep 600"}, CWD: ".", Timeout: max(time.Second, whole), Collect: []string{"kept"}}
	got, err = env.(backends.JobRunner).RunJob(t.Context(), job)
	if err != nil || !got.TimedOut || string(got.Stdout) != "so far\n" || len(got.Files) != 1 {
		t.Errorf("after its time: %+v, %v", got, err)
	}
	if got := resultOf(t, call(t, env, "read_file", map[string]any{"path": "kept"}))["content"]; got != "kept\n" {
		t.Errorf("in the workspace there is %q", got)
	}
	if entries := must(os.ReadDir(binding.StateDir))(t); slices.ContainsFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), spooled) }) {
		t.Errorf("spooled files have names: %v", entries)
	}
}
