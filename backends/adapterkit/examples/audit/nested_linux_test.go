package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/adapterkit"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// nested is a profile whose adapter delegates to an adapter that delegates to argv.
func nested(t *testing.T, workspace string, argv ...string) profile.Profile {
	t.Helper()
	dir := t.TempDir()
	inner := audited(t, filepath.Join(dir, "inner.jsonl"), argv...)
	return profile.Profile{
		Name: "nested", Backend: profile.Command, Workspace: workspace,
		// What is further out has longer to end.
		Command:        append([]string{inner[0], "audit", "-log", filepath.Join(dir, "outer.jsonl"), "-grace", "40s", "--"}, slices.Insert(inner, 2, "-grace", "20s")...),
		PermissionMode: tool.Unconfined, MaxPermissionMode: tool.Unconfined,
		Timeout: time.Minute, ShutdownTimeout: time.Minute,
	}
}

// worker is the static program that has our worker.
func worker(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("CAISSON_TEST_PROGRAM"); path != "" {
		return path
	}
	out := filepath.Join(t.TempDir(), "caisson")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", out, "../../../docker/testdata/far")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return out
}

// TestNestedInContainer: service, adapter, adapter, and our worker in a container
// that lives as long as the innermost connection. Everything goes through all of it.
func TestNestedInContainer(t *testing.T) {
	image := dockertest.UseShell(t)
	name := "caisson-nested-" + strings.ToLower(rand.Text())
	p := nested(t, "/workspace", "docker", "run", "--rm", "--interactive", "--init", "--network=none", "--name="+name,
		"--volume="+worker(t)+":/caisson:ro", image, "/caisson", "worker", "--permission-mode=unconfined", "--max-permission-mode=unconfined")
	t.Cleanup(func() { _ = exec.Command("docker", "rm", "--force", name).Run() })
	e := begin(t, p)
	events := e.Events().Subscribe()
	defer events.Close()
	fs := e.(backends.FileSystem)
	bash := func(ctx context.Context, line string) (string, error) {
		raw, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Call(ctx, tool.Request{ID: "c", Name: "bash", Arguments: raw})
		var out struct{ Stdout string }
		if err == nil {
			err = json.Unmarshal(r.StructuredContent, &out)
		}
		return out.Stdout, err
	}

	// Files, and an export, byte for byte.
	content := make([]byte, 3<<20)
	rand.Read(content)
	if _, err := fs.WriteFile(t.Context(), "big.bin", content); err != nil {
		t.Fatal(err)
	}
	if out, err := bash(t.Context(), "wc -c < big.bin; pwd; echo $HIDDEN"); err != nil || out != "3145728\n/workspace\ns3cr3t-value\n" {
		t.Errorf("%q, %v", out, err)
	}
	r, err := e.Call(t.Context(), tool.Request{ID: "c", Name: "present_artifact", Arguments: []byte(`{"path":"big.bin"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var export struct {
		Token string `json:"execution_export"`
	}
	if err := json.Unmarshal([]byte(r.Content[0].Text), &export); err != nil {
		t.Fatal(err)
	}
	stream, err := e.Export(t.Context(), export.Token)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(stream); errors.Join(err, stream.Close()) != nil || !bytes.Equal(got, content) {
		t.Errorf("exported %d bytes, %v", len(got), err)
	}

	// Processes: exact input and output, and events in order.
	process, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "cat; exit 3", Actor: "s"})
	if err != nil {
		t.Fatal(err)
	}
	raw := []byte("\xff\x00\xfe\n")
	if _, err := e.Processes().Write(t.Context(), process.ID, raw); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Processes().CloseStdin(t.Context(), process.ID); err != nil {
		t.Fatal(err)
	}
	var seen []string
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for last := false; !last; {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatal(seen, err)
		}
		if event.Process != nil {
			seen = append(seen, string(event.Process.Type))
			last = event.Process.Process.OutputClosed
		}
	}
	if seen[0] != "started" || !slices.Contains(seen, "stopped") {
		t.Errorf("events %v", seen)
	}
	if got, err := e.Processes().Read(t.Context(), process.ID, tool.ReadOptions{}); err != nil || !bytes.Equal(got.Output, raw) || got.Process.ExitCode != 3 {
		t.Errorf("read %q %+v, %v", got.Output, got.Process, err)
	}

	// A cancelled command is gone, in there.
	cancelled, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := bash(cancelled, "echo $$ > pid; sleep 300")
		done <- err
	}()
	for {
		if pid, err := fs.ReadFile(t.Context(), "pid", 0, -1); err == nil && len(pid) > 1 {
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the command never began")
		}
	}
	stop()
	if err := <-done; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if out, err := bash(t.Context(), "kill -0 $(cat pid) 2>/dev/null && echo lives; echo end"); err != nil || out != "end\n" {
		t.Errorf("after the cancel: %q, %v", out, err)
	}

	// The end, with a process that has to be killed, within all budgets.
	if _, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o2", Command: "trap '' TERM; sleep 300 & sleep 300", Actor: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Shutdown(ctx), e.Detach(ctx)); err != nil {
		t.Fatal(err)
	}
	if left := dockertest.Docker(t, "ps", "--all", "--quiet", "--filter=name="+name); left != "" {
		t.Errorf("the container is left: %s", left)
	}
	if left := processes(t, name); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

// interpreter is an adapter that runs programs: what it is given is the name of a
// tool, which it calls twice at once.
func interpreter() error {
	b, err := adapterkit.New(adapterkit.Handlers{
		Initialize: func(_ context.Context, _ *adapterkit.Session, in wire.Initialize) (string, error) {
			return in.Root, nil
		},
		Execute: func(context.Context, adapterkit.Call) (tool.Result, error) {
			return tool.Result{}, errors.New("there are no tools here")
		},
		RunCode: func(ctx context.Context, p adapterkit.Program) (out wire.RunCodeResult, err error) {
			answers := make(chan string, 2)
			for i := range 2 {
				go func() {
					r, err := p.InvokeTool(ctx, wire.ToolCall{Name: p.Program.Code, Arguments: fmt.Sprintf(`{"i":%d}`, i)})
					if err != nil {
						answers <- "error: " + err.Error()
						return
					}
					answers <- r.Content[0].Text
				}()
			}
			out.Logs = []string{<-answers, <-answers}
			slices.Sort(out.Logs)
			if p.Program.Code == "linger" {
				<-ctx.Done() // the answers may come before the cancellation
			}
			out.Value = json.RawMessage(fmt.Sprintf(`{"tools":%d,"timeout":%d,"actor":%q,"mode":%q}`, len(p.Program.Tools), p.TimeoutMS, p.Actor, p.PermissionMode))
			return out, ctx.Err()
		},
	})
	if err != nil {
		return err
	}
	return adapterkit.Run(context.Background(), b, adapterkit.Options{})
}

// TestNestedCallbacks: the calls of a program come back through all adapters, and
// its cancellation reaches all of them.
func TestNestedCallbacks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := begin(t, nested(t, "/w", self, "interpreter")).(backends.CodeRunner)
	request := backends.CodeRequest{
		Code: "ask", Tools: []tool.Description{{Name: "ask"}}, Timeout: time.Minute,
		Actor: tool.Actor{ID: "helper", Kind: tool.ActorSubagent}, Mode: tool.ReadOnly,
		Invoke: func(_ context.Context, c backends.NestedCall) (tool.Result, error) {
			if string(c.Arguments) == `{"i":1}` {
				return tool.Result{}, errors.New("not this time")
			}
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: c.Name + string(c.Arguments)}}}, nil
		},
	}
	got, err := e.RunCode(t.Context(), request)
	if err != nil || !slices.Equal(got.Logs, []string{`ask{"i":0}`, "error: not this time"}) ||
		string(got.Value) != `{"tools":1,"timeout":60000,"actor":"helper","mode":"read_only"}` {
		t.Errorf("%q %s, %v", got.Logs, got.Value, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	request.Code = "linger"
	request.Invoke = func(ctx context.Context, _ backends.NestedCall) (tool.Result, error) {
		cancel()
		<-ctx.Done()
		ended <- ctx.Err()
		return tool.Result{}, ctx.Err()
	}
	if _, err := e.RunCode(ctx, request); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("cancelled: %v", err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a call ended with %v", err)
	}
}

// TestNestedDeath: when the innermost peer dies the whole chain does, and all of it
// begins anew at the next call.
func TestNestedDeath(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e := begin(t, nested(t, filepath.Join(dir, "w"), self, "worker", "--permission-mode=unconfined", "--max-permission-mode=unconfined", "--state="+filepath.Join(dir, "state")))
	bash := func(line string) (string, error) {
		r, err := e.Call(t.Context(), tool.Request{ID: "c", Name: "bash", Arguments: []byte(`{"command":"` + line + `"}`)})
		return string(r.StructuredContent), err
	}
	if _, err := bash("echo kept > f; kill -KILL $PPID"); tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatalf("%v", err)
	}
	if out, err := bash("cat f"); err != nil || !strings.Contains(out, "kept") {
		t.Errorf("%s, %v", out, err)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if left := processes(t, dir); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
