package docker

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// These tests have the real worker in the container.

// bash runs a command line and returns what it wrote.
func bash(t testing.TB, env backends.Environment, line string) (stdout string, exitCode int) {
	t.Helper()
	var ran struct {
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		ExitCode int    `json:"exit_code"`
	}
	result := call(t, env, "bash", map[string]any{"command": line})
	if err := json.Unmarshal(result.StructuredContent, &ran); err != nil {
		t.Fatal(err)
	}
	if ran.Stderr != "" {
		t.Logf("%s: %s", line, ran.Stderr)
	}
	return ran.Stdout, ran.ExitCode
}

func TestSecretsStayOnTheConnection(t *testing.T) {
	const value = "correct-horse-battery-staple"
	b := newBackend(t, far(t))
	binding := newBinding(t, b, dockertest.UseShell(t))
	binding.Secrets = backends.Secrets{Token: b.random() + b.random(), Environment: map[string]string{"FORWARDED": value}}
	env := opened(t, b, binding)
	if got, _ := bash(t, env, "echo $FORWARDED"); got != value+"\n" {
		t.Fatalf("the command sees %q", got)
	}
	if _, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Actor: binding.Session, Command: "sleep 60"}); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{
		"docker inspect": inspected(t, binding.Environment, nil),
		"docker top":     dockertest.Docker(t, "top", binding.Environment, "-eo", "pid,args"),
		"docker logs":    dockertest.Docker(t, "logs", binding.Environment),
	}
	for where, text := range seen {
		for name, secret := range map[string]string{"variable's value": value, "token": binding.Secrets.Token} {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows the %s", where, name)
			}
		}
	}
}

// Without a session a container removes itself when its idle limit is over, and
// all that was in it.
func TestIdleContainerRemovesItself(t *testing.T) {
	b := newBackend(t, far(t))
	binding := newBinding(t, b, bare(t))
	binding.Profile.Lifetime = time.Second
	env := opened(t, b, binding)
	call(t, env, "write_file", map[string]any{"path": "f", "content": "x"})
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(removalTimeout); len(left(t, binding.Store)) > 0; {
		if time.Now().After(deadline) {
			t.Fatalf("left: %q", left(t, binding.Store))
		}
	}
	binding.Provisioned = true
	binding.Secrets.Token = b.random() + b.random()
	if _, err := b.Open(t.Context(), binding, nil); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("opening it again: %v", err)
	}
}

func TestHostWorkspace(t *testing.T) {
	b := newBackend(t, far(t))
	image := dockertest.UseShell(t)
	folder := privateDir(t)
	write(t, filepath.Join(folder, "given"), "from the host\n")
	binding := newBinding(t, b, image)
	binding.WorkspaceFolder = folder
	binding.Profile.HostWorkspace = profile.WorkspaceFolder
	env := opened(t, b, binding)
	if got, _ := bash(t, env, "cat given; echo made > made"); got != "from the host\n" {
		t.Errorf("the command read %q", got)
	}
	call(t, env, "write_file", map[string]any{"path": "written", "content": "w"})
	for _, name := range []string{"made", "written"} {
		if got := must(os.Stat(filepath.Join(folder, name)))(t); !ownedByCaller(got) {
			t.Errorf("%s does not belong to the caller: %+v", name, got.Sys())
		}
	}

	readOnly := newBinding(t, b, image)
	readOnly.WorkspaceFolder = folder
	readOnly.Profile.HostWorkspace, readOnly.Profile.MountReadOnly = profile.WorkspaceFolder, true
	env = opened(t, b, readOnly)
	if _, code := bash(t, env, "echo x > given"); code == 0 {
		t.Error("a read-only mount was written to")
	}
	if got := string(must(os.ReadFile(filepath.Join(folder, "given")))(t)); got != "from the host\n" {
		t.Errorf("the file is now %q", got)
	}

	without := newBinding(t, b, image)
	without.Profile.HostWorkspace = profile.WorkspaceFolder
	if _, err := b.Open(t.Context(), without, nil); tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("without an opened folder: %v", err)
	}
}

// Sessions of a shared environment see one file system, each through a worker
// of its own.
func TestShared(t *testing.T) {
	b := newBackend(t, far(t))
	first := newBinding(t, b, dockertest.UseShell(t))
	first.Profile.Shared = true
	one := opened(t, b, first)
	second := first
	second.Session, second.Provisioned = first.Session+"-2", true
	two := opened(t, newBackend(t, far(t)), second)
	call(t, one, "write_file", map[string]any{"path": "f", "content": "from one"})
	if got, _ := bash(t, two, "cat f"); got != "from one" {
		t.Errorf("the second session read %q", got)
	}
	if _, err := one.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Actor: first.Session, Command: "sleep 60"}); err != nil {
		t.Fatal(err)
	}
	if got := must(two.Processes().List(t.Context()))(t); len(got) > 0 {
		t.Errorf("the second session sees the first's processes: %+v", got)
	}
}

// A persistent container that was stopped, by a restart of the machine for one,
// comes back with its files; its processes are gone and said to be.
func TestPersistentKeepsFiles(t *testing.T) {
	b := newBackend(t, far(t))
	binding := newBinding(t, b, dockertest.UseShell(t))
	binding.Profile.Persistent = true
	binding.Secrets.Token = b.random() + b.random()
	env := opened(t, b, binding)
	call(t, env, "write_file", map[string]any{"path": "f", "content": "kept"})
	started := must(env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Actor: binding.Session, Command: "sleep 600"}))(t)
	dockertest.Docker(t, "kill", binding.Environment)
	binding.Provisioned = true
	again := opened(t, newBackend(t, far(t)), binding)
	if got, _ := bash(t, again, "cat f"); got != "kept" {
		t.Errorf("the file holds %q", got)
	}
	if got := must(again.Processes().Get(t.Context(), started.ID))(t); got.Status != tool.ProcessFailed || got.TerminalCause != tool.CauseLost {
		t.Errorf("the process is %s (%s)", got.Status, got.TerminalCause)
	}
}

// A persistent container that was stopped is not started where it is only to be ended.
func TestStoppedStaysStopped(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.Profile.Persistent = true
	h, binding := created(t, b, binding)
	dockertest.Docker(t, "kill", binding.Environment)
	binding.Provisioned, binding.OnlyRunning = true, true
	if err := h.Attach(t.Context(), binding); !errors.Is(err, backends.ErrStopped) || tool.HintOf(err) == "" {
		t.Errorf("got %v (%s)", err, tool.HintOf(err))
	}
	if got := dockertest.Docker(t, "inspect", "-f", "{{.State.Running}}", binding.Environment); strings.TrimSpace(got) != "false" {
		t.Errorf("it runs: %s", got)
	}
}

// One that is stopped under a call stays stopped until the next call, and to be ended too.
func TestStoppedUnderACall(t *testing.T) {
	b := newBackend(t, far(t))
	binding := newBinding(t, b, dockertest.UseShell(t))
	binding.Profile.Persistent = true
	binding.Secrets.Token = b.random() + b.random()
	env := opened(t, b, binding)
	events := env.Events().Subscribe()
	t.Cleanup(events.Close)
	awaited := func(is func(e backends.Event) bool) {
		t.Helper()
		for {
			e, err := events.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if is(e) {
				return
			}
		}
	}
	stopped := func() {
		t.Helper()
		// It is tried to connect once more, which may meet a container that only begins to end.
		for _, state := range []backends.State{backends.StateConnecting, backends.StateDisconnected} {
			awaited(func(e backends.Event) bool { return e.State != nil && e.State.State == state })
		}
		dockertest.Docker(t, "wait", binding.Environment)
		if got := dockertest.Docker(t, "inspect", "-f", "{{.State.Running}}", binding.Environment); strings.TrimSpace(got) != "false" {
			t.Errorf("it runs: %s", got)
		}
	}
	lost := make(chan error, 1)
	go func() {
		_, err := env.Call(t.Context(), tool.Request{Name: "bash", Arguments: json.RawMessage(`{"command": "echo begun > f; sleep 600"}`)})
		lost <- err
	}()
	for got := ""; got != "begun\n"; {
		got, _ = bash(t, env, "cat f || sleep 0.1")
	}
	dockertest.Docker(t, "kill", binding.Environment)
	if err := <-lost; tool.KindOf(err) != tool.OutcomeUnknown {
		t.Errorf("the call: %v", err)
	}
	stopped()
	if got, _ := bash(t, env, "cat f"); got != "begun\n" {
		t.Errorf("the file holds %q", got)
	}
	must(env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Actor: binding.Session, Command: "sleep 600"}))(t)
	awaited(func(e backends.Event) bool { return e.Process != nil && e.Process.Type == tool.EventStarted })
	dockertest.Docker(t, "kill", binding.Environment)
	stopped()
	if err := env.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := dockertest.Docker(t, "inspect", "-f", "{{.State.Running}}", binding.Environment); strings.TrimSpace(got) != "false" {
		t.Errorf("it was started to be ended: %s", got)
	}
}

func TestWorkerOfTheImage(t *testing.T) {
	b := newBackend(t, "/nowhere") // none of ours is needed
	i := dockertest.Bare()
	i.Files = append(i.Files, dockertest.File{Path: "/opt/worker", Mode: 0o755, Data: must(os.ReadFile(far(t)))(t)})
	binding := newBinding(t, b, dockertest.Use(t, i))
	binding.Profile.Worker, binding.Profile.ReadOnlyRoot = "/opt/worker", true
	env := opened(t, b, binding)
	call(t, env, "write_file", map[string]any{"path": "f", "content": "x"})
}

// When a container's memory is short its commands are ended, and not the worker.
func TestCommandsAreEndedFirst(t *testing.T) {
	b := newBackend(t, far(t))
	env := opened(t, b, newBinding(t, b, dockertest.UseShell(t)))
	// The command's own process: a child that it forks before its score is set has none.
	const line = "until read score < /proc/self/oom_score_adj && [ $score = 1000 ]; do :; done; echo $score"
	if out, code := bash(t, env, line); code != 0 || out != "1000\n" {
		t.Errorf("the score of a command is %q", out)
	}
}

// A command that uses up a container's memory is said to have done that, in a container
// of its own too, and in one that has no more than there must be.
func TestMemoryUsedUp(t *testing.T) {
	image := dockertest.UseShell(t)
	for _, policy := range []string{profile.PolicyPerSession, profile.PolicyPerCall} {
		t.Run(policy, func(t *testing.T) {
			b := newBackend(t, far(t))
			binding := newBinding(t, b, image)
			binding.Profile.Memory, binding.Profile.ContainerPolicy = profile.MinMemory, policy
			env := opened(t, b, binding)
			hog := map[string]any{"command": `x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done`}
			var ran struct {
				Signal, Hint string
				OOMKilled    tool.OOMKilled `json:"oom_killed"`
			}
			if err := json.Unmarshal(call(t, env, "bash", hog).StructuredContent, &ran); err != nil {
				t.Fatal(err)
			}
			if ran.Signal != "SIGKILL" || ran.OOMKilled != tool.OOMCertain || !strings.Contains(ran.Hint, "memory") {
				t.Errorf("%+v", ran)
			}
			// The session has outlived it.
			if out, code := bash(t, env, "echo alive"); code != 0 || out != "alive\n" {
				t.Errorf("%d, %q", code, out)
			}
		})
	}
}

// A program that cannot be the worker fails with its own words, and nothing is
// left of the attempt.
func TestContainerThatEndsAtOnce(t *testing.T) {
	b := newBackend(t, far(t))
	i := dockertest.Bare()
	i.Files = append(i.Files, dockertest.File{Path: "/opt/worker", Mode: 0o755, Data: must(os.ReadFile(far(t)))(t)})
	binding := newBinding(t, b, dockertest.Use(t, i))
	binding.Profile.Worker = "/opt/worker"
	binding.Secrets.Token = b.random() + b.random()
	h, binding, err := b.host(binding)
	if err != nil {
		t.Fatal(err)
	}
	spec := b.spec(binding, daemonInfo{}, h.engine.endpoint, nil, "")
	spec.Args = []string{"init", "--no-such-flag"}
	id := must(b.create(t.Context(), h.engine, spec))(t)
	boot := must(h.engine.watch(t.Context(), id))(t)
	h.watched(boot)
	if err := h.engine.start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	<-boot.ended
	_, err = h.Dial(t.Context(), binding)
	if tool.KindOf(err) != tool.EnvironmentLost || !strings.Contains(err.Error(), "no-such-flag") {
		t.Errorf("got %v", err)
	}
}

func TestCheckFindsAll(t *testing.T) {
	b := newBackend(t, far(t))
	tests := []struct {
		name, image, want string
	}{
		{"a shell", dockertest.UseShell(t), "a write of a read-only command was refused"},
		{"no shell", bare(t), "the image has no shell to try it with"},
	}
	for _, test := range tests {
		binding := newBinding(t, b, test.image)
		binding.Profile.HostWorkspace = profile.WorkspaceFolder // there is none to try
		health := b.Check(t.Context(), binding.Profile)
		last := health.Checks[len(health.Checks)-1]
		if !health.OK || last.Name != "confinement" || last.Detail != test.want || health.Duration <= 0 {
			t.Errorf("%s: %+v", test.name, health)
		}
	}
	if got := left(t, checkStore); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	nowhere := newBinding(t, b, bare(t)).Profile
	nowhere.HostWorkspace = filepath.Join(t.TempDir(), "none")
	if health := b.Check(t.Context(), nowhere); health.OK || !strings.Contains(fmt.Sprint(health.Checks), nowhere.HostWorkspace) {
		t.Errorf("a host_workspace that is not there: %+v", health)
	}
	missing := newBinding(t, b, "caisson-test/none:1").Profile
	for pull, says := range map[string]string{"missing": "a session would pull it", "": "a session would pull it", "never": "says pull: never"} {
		missing.Pull = pull
		health := b.Check(t.Context(), missing)
		i := slices.IndexFunc(health.Checks, func(c backends.Check) bool { return !c.OK })
		if health.OK || i < 0 || health.Checks[i].Name != "image" || !strings.Contains(health.Checks[i].Detail, says) ||
			!strings.Contains(health.Checks[i].Hint, "docker pull caisson-test/none:1") {
			t.Errorf("a missing image, pull %q: %+v", pull, health)
		}
	}
}

// service is the variable that makes TestService the service of
// TestServiceKilled, in a process of its own.
const service = "CAISSON_TEST_SERVICE_BINDING"

func TestService(t *testing.T) {
	raw := os.Getenv(service)
	if raw == "" {
		t.Log("only TestServiceKilled starts it for real")
		return
	}
	var binding backends.Binding
	if err := json.Unmarshal([]byte(raw), &binding); err != nil {
		t.Fatal(err)
	}
	binding.Secrets = backends.Secrets{Token: strings.Repeat("5", 64)}
	env := must(New(Options{Executable: os.Getenv("CAISSON_TEST_FAR")}).Open(t.Context(), binding, nil))(t)
	p := must(env.Processes().Start(t.Context(), tool.StartRequest{
		OperationID: "count", Actor: binding.Session, Command: "i=0; while :; do echo $i; i=$((i+1)); done",
	}))(t)
	fmt.Println("started", p.ID)
	<-t.Context().Done()
}

// A service that is killed in the middle of everything takes nothing along: the
// next one finds the process still counting, and its output without a hole.
func TestServiceKilled(t *testing.T) {
	b := newBackend(t, far(t))
	binding := newBinding(t, b, dockertest.UseShell(t))
	raw := string(must(json.Marshal(binding))(t))
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestService$", "-test.v")
	cmd.Env = append(os.Environ(), service+"="+raw, "CAISSON_TEST_FAR="+far(t))
	out := must(cmd.StdoutPipe())(t)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var id string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "started "); ok {
			id = rest
			break
		}
		t.Log(lines.Text())
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	if id == "" {
		t.Fatal("the service started no process")
	}

	binding.Provisioned = true
	binding.Secrets = backends.Secrets{Token: strings.Repeat("5", 64)}
	env := opened(t, b, binding)
	var offset int64
	var tail string
	for next := 0; next < 20_000; {
		read := must(env.Processes().Read(t.Context(), id, tool.ReadOptions{OffsetBytes: &offset, MaxBytes: 64 << 10, Wait: time.Second}))(t)
		if read.Process.Status != tool.ProcessRunning {
			t.Fatalf("the process is %s (%s)", read.Process.Status, read.Process.TerminalCause)
		}
		if read.StartOffset != offset {
			t.Fatalf("asked for %d, got %d", offset, read.StartOffset)
		}
		offset = read.EndOffset
		lines := strings.Split(tail+string(read.Output), "\n")
		tail = lines[len(lines)-1]
		for _, line := range lines[:len(lines)-1] {
			if line != strconv.Itoa(next) {
				t.Fatalf("after %d came %q", next-1, line)
			}
			next++
		}
	}
	must(env.Processes().Stop(t.Context(), id))(t)
}

// The shared directory is open inside, to whatever user works there, and guarded
// outside by the one above it.
func TestShareDirectory(t *testing.T) {
	dir := privateDir(t)
	share := filepath.Join(dir, "d-1")
	if err := makeShare(share); err != nil {
		t.Fatal(err)
	}
	if got := must(os.Stat(share))(t).Mode(); got != fs.ModeDir|0o711 {
		t.Errorf("its mode is %s", got)
	}
	if err := makeShare(share); err != nil {
		t.Errorf("again: %v", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := makeShare(filepath.Join(dir, "d-2")); err == nil {
		t.Error("it was made where others can get to it")
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	if err := os.Symlink(target, filepath.Join(dir, "d-3")); err != nil {
		t.Fatal(err)
	}
	if err := makeShare(filepath.Join(dir, "d-3")); err == nil {
		t.Error("a link was followed")
	}
}
