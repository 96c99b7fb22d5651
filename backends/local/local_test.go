//go:build linux

package local

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// shortLife is a lifetime that is waited for: longer than a start takes, on a busy
// machine too.
const shortLife = 10 * time.Second

func binding(t testing.TB) backends.Binding {
	t.Helper()
	run, err := os.MkdirTemp("/tmp", "lc") //nolint:usetesting // a test's own directories have long paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(run); err != nil {
			t.Error(err)
		}
	})
	p := profile.BuiltIn(profile.Defaults{})
	p.Lifetime = time.Minute
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return backends.Binding{
		Session: "s1", Environment: "caisson-0123456789abcdef0123456789abcdef",
		Profile: p, WorkspaceFolder: folder, StateDir: t.TempDir(), RuntimeDir: run,
		Secrets: secrets(),
	}
}

// open opens an environment that is shut down with the test.
func open(t *testing.T, at backends.Binding) backends.Environment {
	t.Helper()
	b := New(Options{})
	env, err := b.Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := env.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := b.Remove(ctx, at); err != nil {
			t.Errorf("remove: %v", err)
		}
	})
	return env
}

func try(t *testing.T, env backends.Environment, name string, arguments any) (tool.Result, error) {
	t.Helper()
	r := call(t, name, arguments)
	r.Actor = tool.Actor{ID: "s1", Kind: tool.ActorMain}
	return env.Call(t.Context(), r)
}

// run runs a shell line that must end well and returns what it printed.
func run(t *testing.T, env backends.Environment, line string) string {
	t.Helper()
	res, err := try(t, env, "bash", map[string]any{"command": line})
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	var ran struct {
		Stdout   string `json:"stdout"`
		Stderr   string `json:"stderr"`
		ExitCode int    `json:"exit_code"`
	}
	if err := json.Unmarshal(res.StructuredContent, &ran); err != nil || ran.ExitCode != 0 {
		t.Fatalf("%s: %v, %s", line, err, res.StructuredContent)
	}
	return ran.Stdout
}

func wantKind(t *testing.T, what string, err error, kind tool.Kind) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind {
		t.Errorf("%s: %v (%s), want %s", what, err, tool.KindOf(err), kind)
	}
}

// workerPID is the pid of a binding's worker, which must run.
func workerPID(t *testing.T, at backends.Binding) int {
	t.Helper()
	pid, err := endpoint.ServerPID(t.Context(), workerOptions(at).Listen)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitWorkerEnd returns when no worker of the binding is left.
func awaitWorkerEnd(t *testing.T, at backends.Binding) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	lock, err := endpoint.Acquire(ctx, worker.LockPath(workerState(at), at.Session))
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

// Files need no worker, and neither do questions about processes that there
// never were.
func TestNoWorkerWithoutCommand(t *testing.T) {
	at := binding(t)
	env := open(t, at)
	if _, err := try(t, env, "write_file", map[string]any{"path": "a", "content": "b"}); err != nil {
		t.Fatal(err)
	}
	if b, err := env.(backends.FileSystem).ReadFile(t.Context(), "a", 0, -1); err != nil || string(b) != "b" {
		t.Errorf("the file is %q, %v", b, err)
	}
	if list, err := env.Processes().List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("processes: %v, %v", list, err)
	}
	_, err := env.Processes().Get(t.Context(), "p-x")
	wantKind(t, "a process that never was", err, tool.ProcessNotFound)
	if everStarted(at) {
		t.Error("a worker was started")
	}
	tools, err := env.Tools(t.Context())
	if err != nil || len(tools) != 10 {
		t.Errorf("%d tools, %v; want the ten of the workspace", len(tools), err)
	}
	if info := env.Info(); info.Root != at.WorkspaceFolder || info.Backend != profile.Local {
		t.Errorf("info %+v", info)
	}
}

// A killed service takes nothing along: the next one finds the worker, the
// process counts on, and the output goes on at the byte.
func TestServiceKilled(t *testing.T) {
	at := binding(t)
	saved := filepath.Join(t.TempDir(), "binding.json")
	b, err := json.Marshal(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(saved, b, 0o600); err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	service := exec.Command(exe, "service", saved)
	service.Stderr = os.Stderr
	out, err := service.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	var before told
	if err := json.NewDecoder(out).Decode(&before); err != nil {
		t.Fatal(err)
	}
	if err := service.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := service.Wait(); err == nil {
		t.Fatal("the service ended by itself")
	}

	at.Provisioned = true
	at.Secrets.Environment = nil // cannot be taken again
	env := open(t, at)
	p, err := env.Processes().Get(t.Context(), before.Process)
	if err != nil || p.PID != before.PID || p.Status != tool.ProcessRunning {
		t.Fatalf("the process is %+v, %v", p, err)
	}
	zero := int64(0)
	first, err := env.Processes().Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: &zero, MaxBytes: int(before.Offset)})
	if err != nil {
		t.Fatal(err)
	}
	text, offset := first.Output, before.Offset
	for bytes.Count(text, []byte("\n")) < 100 {
		read, err := env.Processes().Read(t.Context(), p.ID, tool.ReadOptions{OffsetBytes: &offset, Wait: patience})
		if err != nil || read.StartOffset != offset {
			t.Fatalf("read at %d: %+v, %v", offset, read, err)
		}
		text, offset = append(text, read.Output...), read.EndOffset
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines[:len(lines)-1] {
		if line != strconv.Itoa(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if got := run(t, env, "echo $HIDDEN"); got != "s3cret-value\n" {
		t.Errorf("the variable is %q after the reattach", got)
	}
}

// A reattach to a live worker needs no command: events come at once.
func TestReattachHearsEvents(t *testing.T) {
	at := binding(t)
	first := open(t, at)
	p, err := first.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "read x; exit 3", Actor: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Provisioned = true
	env := open(t, at)
	s := env.Events().Subscribe()
	defer s.Close()
	if err := syscall.Kill(p.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if e.Process != nil && e.Process.Process.ID == p.ID && e.Process.Process.Status.Terminal() {
			break
		}
	}
}

// A variable that was rotated on the host does not keep anybody from a worker
// that lives; a new worker gets the new value.
func TestRotatedVariable(t *testing.T) {
	at := binding(t)
	first := open(t, at)
	run(t, first, "true")
	if err := first.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	at.Provisioned = true
	at.Secrets.Environment = map[string]string{"HIDDEN": "rotated"}
	env := open(t, at)
	if got := run(t, env, "echo $HIDDEN"); got != "s3cret-value\n" {
		t.Errorf("the live worker's variable is %q", got)
	}
	if err := syscall.Kill(workerPID(t, at), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitWorkerEnd(t, at)
	if got := run(t, env, "echo $HIDDEN"); got != "rotated\n" {
		t.Errorf("the new worker's variable is %q", got)
	}
}

// A subscriber from before the first command hears of it.
func TestEventsBeforeWorker(t *testing.T) {
	env := open(t, binding(t))
	s := env.Events().Subscribe()
	defer s.Close()
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "true", Actor: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	var seen []tool.ProcessEventType
	for len(seen) == 0 || seen[len(seen)-1] != tool.EventStopped {
		e, err := s.Next(t.Context())
		if err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		if e.Process == nil || e.Process.Process.ID != p.ID {
			t.Fatalf("event %+v", e)
		}
		seen = append(seen, e.Process.Type)
	}
	if seen[0] != tool.EventStarted {
		t.Errorf("events %v", seen)
	}
}

// A killed worker's call has an unknown outcome, its processes are lost and
// dead, and the next command starts another one.
func TestWorkerKilled(t *testing.T) {
	at := binding(t)
	env := open(t, at)
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "exec sleep 1000", Actor: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := env.Call(t.Context(), tool.Request{
			ID: "in-flight", Name: "bash", Arguments: []byte(`{"command":"touch begun; sleep 100"}`),
			Actor: tool.Actor{ID: "s1", Kind: tool.ActorMain},
		})
		failed <- err
	}()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for begun := filepath.Join(at.WorkspaceFolder, "begun"); ; <-tick.C {
		if _, err := os.Stat(begun); err == nil {
			break
		}
	}
	if err := syscall.Kill(workerPID(t, at), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	wantKind(t, "the call in flight", <-failed, tool.OutcomeUnknown)
	if got := run(t, env, "echo again; echo $HIDDEN"); got != "again\ns3cret-value\n" {
		t.Errorf("after the restart: %q", got)
	}
	got, err := env.Processes().Get(t.Context(), p.ID)
	if err != nil || got.TerminalCause != tool.CauseLost {
		t.Errorf("the process is %+v, %v", got, err)
	}
	if state, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat"); err == nil && !strings.Contains(string(state), ") Z") {
		t.Errorf("it is still there: %s", state)
	}
}

// With no service the worker ends after its lifetime.
func TestIdle(t *testing.T) {
	at := binding(t)
	at.Profile.Lifetime = shortLife
	env := open(t, at)
	run(t, env, "true")
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitWorkerEnd(t, at)
	if _, err := os.Stat(at.WorkspaceFolder); err != nil {
		t.Errorf("the opened folder: %v", err)
	}
}

func TestMissingFolder(t *testing.T) {
	at := binding(t)
	at.WorkspaceFolder = filepath.Join(at.WorkspaceFolder, "gone")
	_, err := New(Options{}).Open(t.Context(), at, nil)
	wantKind(t, "a folder that is not there", err, tool.BackendUnavailable)
	at.Provisioned = true
	_, err = New(Options{}).Open(t.Context(), at, nil)
	wantKind(t, "a folder that is gone", err, tool.EnvironmentLost)
	if _, err := os.Stat(at.WorkspaceFolder); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
	at.WorkspaceFolder = ""
	_, err = New(Options{}).Open(t.Context(), at, nil)
	wantKind(t, "an own workspace that is gone", err, tool.EnvironmentLost)
}

// Remove ends a worker that nobody can open any more, removes what commands have closed
// even to their user, and keeps the folder's surroundings.
func TestRemoveWithoutFolder(t *testing.T) {
	at := binding(t)
	env, err := New(Options{}).Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	run(t, env, `mkdir -p "$TMPDIR/shut/in" && chmod 0 "$TMPDIR/shut"`)
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "exec sleep 1000", Actor: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(at.WorkspaceFolder); err != nil {
		t.Fatal(err)
	}
	at.Provisioned = true
	at.Secrets.Token = strings.Repeat("f", 64) // not that of the session
	if err := New(Options{}).Remove(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(at.StateDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if state, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat"); err == nil && !strings.Contains(string(state), ") Z") {
		t.Errorf("the process is still there: %s", state)
	}
}

// A profile's variables reach commands and nothing that others can look into.
func TestSecretsStayHidden(t *testing.T) {
	at := binding(t)
	env := open(t, at)
	if got := run(t, env, "echo $HIDDEN"); got != "s3cret-value\n" {
		t.Errorf("the command sees %q", got)
	}
	proc := "/proc/" + strconv.Itoa(workerPID(t, at))
	for _, file := range []string{"environ", "cmdline"} {
		b, err := os.ReadFile(filepath.Join(proc, file))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(b, []byte("s3cret-value")) || bytes.Contains(b, []byte(at.Secrets.Token)) {
			t.Errorf("a secret stands in the worker's %s", file)
		}
	}
}

// An export is immutable, streamed in process, and used up by its close.
func TestExport(t *testing.T) {
	at := binding(t)
	env := open(t, at)
	file := filepath.Join(at.WorkspaceFolder, "f")
	if err := os.WriteFile(file, []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	res, err := try(t, env, "present_artifact", map[string]any{"path": "f"})
	if err != nil || len(res.Content) == 0 {
		t.Fatal(res, err)
	}
	var export struct {
		Token string `json:"execution_export"`
	}
	if err := json.Unmarshal([]byte(res.Content[0].Text), &export); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := env.Export(t.Context(), export.Token)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil || string(b) != "first" {
		t.Errorf("exported %q, %v", b, err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	_, err = env.Export(t.Context(), export.Token)
	wantKind(t, "a used token", err, tool.ArtifactNotFound)
}

func TestCheck(t *testing.T) {
	p := profile.BuiltIn(profile.Defaults{})
	p.Shell = "/nonexistent/shell"
	h := New(Options{Executable: "/nonexistent/caisson"}).Check(t.Context(), p)
	failed := map[string]bool{}
	for _, c := range h.Checks {
		if !c.OK {
			failed[c.Name] = true
			if c.Hint == "" {
				t.Errorf("%s has no hint", c.Name)
			}
		}
	}
	if h.OK || len(failed) != 2 || !failed["shell"] || !failed["worker"] {
		t.Errorf("failed: %v in %+v", failed, h)
	}
}

// Of many first commands at once one starts the worker and all are answered.
func TestFirstCommandsTogether(t *testing.T) {
	env := open(t, binding(t))
	done := make(chan error, 16)
	for range cap(done) {
		go func() {
			_, err := env.Call(t.Context(), tool.Request{
				ID: "c", Name: "bash", Arguments: []byte(`{"command":"true"}`), Actor: tool.Actor{ID: "s1", Kind: tool.ActorMain},
			})
			done <- err
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// A socket path that is too long is told before anything is started.
func TestLongRuntimeDir(t *testing.T) {
	at := binding(t)
	at.RuntimeDir = filepath.Join(at.RuntimeDir, strings.Repeat("long", 30))
	env := open(t, at)
	_, err := try(t, env, "bash", map[string]any{"command": "true"})
	wantKind(t, "bash", err, tool.BackendUnavailable)
	if err == nil || !strings.Contains(err.Error(), "107") {
		t.Errorf("the error does not name the limit: %v", err)
	}
	if everStarted(at) {
		t.Error("a worker was started")
	}
}

func call(t *testing.T, name string, arguments any) tool.Request {
	t.Helper()
	b, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Request{ID: "c", Name: name, Arguments: b}
}
