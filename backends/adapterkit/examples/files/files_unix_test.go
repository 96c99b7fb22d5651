//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// The test binary is the adapter too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "files" {
		os.Args = os.Args[1:]
		main()
		return
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

// opened is a session on the adapter.
type opened struct {
	*testing.T
	backends.Environment
	state, root string
}

func open(t *testing.T) *opened {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	o := &opened{T: t, state: filepath.Join(dir, "state"), root: filepath.Join(dir, "workspace")}
	o.Environment, err = command.New(command.Options{}).Open(t.Context(), backends.Binding{
		Session: "s", Environment: "caisson-1",
		Profile: profile.Profile{
			Backend: profile.Command, Workspace: o.root, Command: []string{self, "files", "-state", o.state},
			PermissionMode: tool.Unconfined, MaxPermissionMode: tool.Unconfined, Timeout: time.Minute, ShutdownTimeout: time.Minute,
		},
		Secrets: backends.Secrets{Token: strings.Repeat("5e", 32), Environment: map[string]string{"GIVEN": "yes"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Detach(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return o
}

type args map[string]any

// try calls a tool in a mode.
func (o *opened) try(ctx context.Context, mode tool.Mode, name string, a args) (map[string]any, error) {
	o.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		o.Fatal(err)
	}
	r, err := o.Call(ctx, tool.Request{ID: "c", Name: name, Arguments: raw, Mode: mode})
	if err != nil {
		return nil, err
	}
	if r.IsError {
		return nil, errors.New(r.Content[0].String())
	}
	var out map[string]any
	if len(r.StructuredContent) > 0 {
		err = json.Unmarshal(r.StructuredContent, &out)
	} else {
		err = json.Unmarshal([]byte(r.Content[0].Text), &out)
	}
	return out, err
}

func (o *opened) call(name string, a args) map[string]any {
	o.Helper()
	out, err := o.try(o.Context(), "", name, a)
	if err != nil {
		o.Fatalf("%s %v: %v", name, a, err)
	}
	return out
}

func (o *opened) start(line string) tool.Process {
	o.Helper()
	p, err := o.Processes().Start(o.Context(), tool.StartRequest{OperationID: "op-" + line, Command: line, Actor: "s"})
	if err != nil {
		o.Fatal(err)
	}
	return p
}

// gone waits for the end of a process.
func gone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for syscall.Kill(pid, 0) == nil {
		if stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat"); strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("process %d lives on", pid)
		}
	}
}

func TestFiles(t *testing.T) {
	o := open(t)
	o.call("write_file", args{"path": "d/a.txt", "content": "one\ntwo\n"})
	if disk, err := os.ReadFile(filepath.Join(o.root, "d/a.txt")); string(disk) != "one\ntwo\n" {
		t.Errorf("on disk %q, %v", disk, err)
	}
	o.call("edit_file", args{"path": filepath.Join(o.root, "d/a.txt"), "old_text": "two", "new_text": "2"})
	if got := o.call("read_file", args{"path": "d/a.txt"}); got["content"] != "one\n2\n" || got["total_lines"] != 2.0 {
		t.Errorf("read %v", got)
	}
	if got := o.call("list_files", args{"path": "d"}); len(got["entries"].([]any)) != 1 {
		t.Errorf("listed %v", got)
	}
	if err := os.Symlink("/etc", filepath.Join(o.root, "out")); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]args{
		"read_file": {"path": "../x"}, "write_file": {"path": "/etc/x", "content": ""}, "list_files": {"path": "out"}, "edit_file": {"path": "out/passwd", "old_text": "root", "new_text": "x"},
		"present_artifact": {"path": "out/passwd"}, "grep": {"pattern": "x"},
	} {
		if got, err := o.try(t.Context(), "", name, a); err == nil {
			t.Errorf("%s %v: %v", name, a, got)
		}
	}
	if _, err := o.try(t.Context(), tool.ReadOnly, "write_file", args{"path": "new", "content": ""}); tool.KindOf(err) != tool.Denied {
		t.Errorf("a write in read_only: %v", err)
	}
	token := o.call("present_artifact", args{"path": "d/a.txt"})["execution_export"].(string)
	r, err := o.Export(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); string(data) != "one\n2\n" || errors.Join(err, r.Close()) != nil {
		t.Errorf("exported %q, %v", data, err)
	}
}

// TestCommandsAreNotConfined: what it cannot confine it does not run.
func TestCommandsAreNotConfined(t *testing.T) {
	o := open(t)
	for _, mode := range []tool.Mode{tool.Standard, tool.ReadOnly} {
		if got, err := o.try(t.Context(), mode, "bash", args{"command": "touch PROOF"}); tool.KindOf(err) != tool.Unsupported {
			t.Errorf("bash in %s: %v, %v", mode, got, err)
		}
		_, err := o.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "touch PROOF", Actor: "s", PermissionMode: mode})
		if tool.KindOf(err) != tool.Unsupported {
			t.Errorf("a process in %s: %v", mode, err)
		}
	}
	if _, err := os.Stat(filepath.Join(o.root, "PROOF")); err == nil {
		t.Error("a command ran")
	}
}

func TestBash(t *testing.T) {
	o := open(t)
	got := o.call("bash", args{"command": "echo out; echo err >&2; pwd; cat; echo $GIVEN; exit 3"})
	if got["exit_code"] != 3.0 || got["stdout"] != "out\n"+o.root+"\nyes\n" || got["stderr"] != "err\n" {
		t.Errorf("%v", got)
	}
	if list, err := o.Processes().List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("left %v, %v", list, err)
	}
	// One that takes longer goes on.
	got = o.call("bash", args{"command": "echo early; while ! test -e go; do sleep 0.05; done; echo late", "timeout_seconds": 3})
	if got["timed_out"] != true || got["stdout"] != "early\n" {
		t.Fatalf("%v", got)
	}
	id := got["promoted_process_id"].(string)
	o.call("write_file", args{"path": "go", "content": ""})
	from := int64(len("early\n"))
	read, err := o.Processes().Read(t.Context(), id, tool.ReadOptions{OffsetBytes: &from, Wait: patience})
	if err != nil || string(read.Output) != "late\n" {
		t.Errorf("read %q, %v", read.Output, err)
	}
	// A cancelled one is gone.
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := o.try(ctx, "", "bash", args{"command": "echo $$ > pid; sleep 300"})
		done <- err
	}()
	var pid int
	for pid == 0 {
		raw, _ := os.ReadFile(filepath.Join(o.root, "pid"))
		pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	}
	cancel()
	if err := <-done; tool.KindOf(err) != tool.Cancelled {
		t.Error(err)
	}
	gone(t, pid)
}

// TestProcesses: real ones, with events and with the output complete at the end,
// which the host finds out by itself.
func TestProcesses(t *testing.T) {
	o := open(t)
	events := o.Events().Subscribe()
	defer events.Close()
	p := o.start("read x; echo got $x; exit 4")
	if _, err := o.Processes().Write(t.Context(), p.ID, []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "closed" {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		e, err := events.Next(ctx)
		cancel()
		if err != nil {
			t.Fatal(seen, err)
		}
		switch {
		case e.Process == nil:
		case e.Process.Process.OutputClosed:
			seen = append(seen, "closed")
		default:
			seen = append(seen, string(e.Process.Type)+string(e.Process.Cause))
		}
	}
	if strings.Join(seen, " ") != "started stoppednatural_exit closed" {
		t.Errorf("events %v", seen)
	}
	got, err := o.Processes().Read(t.Context(), p.ID, tool.ReadOptions{})
	if err != nil || string(got.Output) != "got hello\n" || got.Process.ExitCode != 4 || got.Process.OperationID != p.OperationID {
		t.Errorf("%q %+v, %v", got.Output, got.Process, err)
	}
	running := o.start("trap '' TERM; echo $$ > pid; sleep 300 & wait; sleep 300")
	stopped, err := o.Processes().Stop(t.Context(), running.ID)
	if err != nil || !stopped.Status.Terminal() {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	gone(t, running.PID)
	last := o.start("sleep 300")
	if err := o.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	gone(t, last.PID)
}

// TestRecovery: an adapter that was killed finds the records of what it had started
// when it is started anew, and ends what still runs of it.
func TestRecovery(t *testing.T) {
	o := open(t)
	p := o.start("echo before; sleep 300")
	if _, err := o.try(t.Context(), "", "bash", args{"command": "kill -KILL $PPID"}); tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatalf("the call that killed its adapter: %v", err)
	}
	list, err := o.Processes().List(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("recovered %+v, %v", list, err)
	}
	if r := list[0]; r.ID != p.ID || r.OperationID != p.OperationID || r.Status != tool.ProcessFailed || r.TerminalCause != tool.CauseLost {
		t.Errorf("recovered %+v", r)
	}
	gone(t, p.PID)
	got, err := o.Processes().Read(t.Context(), p.ID, tool.ReadOptions{})
	if err != nil || string(got.Output) != "before\n" {
		t.Errorf("its output: %q, %v", got.Output, err)
	}
}

// TestStrangersAreLeftAlone: a pid that is somebody else's by now is not signalled.
func TestStrangersAreLeftAlone(t *testing.T) {
	state := filepath.Join(t.TempDir(), "state")
	stranger, err := program.Start(program.Options{Argv: []string{"cat"}, Grace: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	was := saved{Process: tool.Process{ID: "p-1", RootThreadID: "s", Status: tool.ProcessRunning, PID: stranger.Pid(), PGID: stranger.Pid()}, Identity: "another boot/1"}
	raw, err := json.Marshal(was)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(state, 0o700), os.WriteFile(filepath.Join(state, "p-1.json"), raw, 0o600)); err != nil {
		t.Fatal(err)
	}
	r, err := openRegistry(state, nil, wire.Initialize{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if p, err := r.get("p-1"); err != nil || p.TerminalCause != tool.CauseLost {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := stranger.Write([]byte("x\n")); err != nil || stranger.Err() != nil {
		t.Error("a stranger was killed")
	}
	if _, err := openRegistry(state, nil, wire.Initialize{Session: "other"}); err == nil {
		t.Error("the records of another session were taken")
	}
}

// TestCleanup: records of what has ended go, with their files, when that is asked for.
func TestCleanup(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	adapter, err := program.Start(program.Options{Argv: []string{self, "files", "-state", dir}, Stderr: os.Stderr, Grace: patience})
	if err != nil {
		t.Fatal(err)
	}
	c := wire.NewClient(adapter, wire.ClientOptions{Token: strings.Repeat("5e", 32)})
	defer c.Close()
	if _, err := c.Initialize(t.Context(), wire.Initialize{Root: filepath.Join(dir, "w"), Session: "s"}); err != nil {
		t.Fatal(err)
	}
	start := tool.StartRequest{OperationID: "o", Command: "true", Actor: "s", PermissionMode: tool.Unconfined}
	reply, err := c.Call(t.Context(), wire.MethodProcessStart, start, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p tool.Process
	if err := reply.Decode(&p); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Call(t.Context(), wire.MethodProcessStop, wire.ProcessRequest{ID: p.ID}, nil); err != nil {
		t.Fatal(err)
	}
	start.Command, start.OperationID = "sleep 300", "o2"
	if _, err := c.Call(t.Context(), wire.MethodProcessStart, start, nil); err != nil {
		t.Fatal(err)
	}
	reply, err = c.Call(t.Context(), wire.MethodProcessCleanup, wire.ProcessRequest{}, nil)
	var cleaned wire.ProcessCleanup
	if err := errors.Join(err, reply.Decode(&cleaned)); err != nil || len(cleaned.Cleaned) != 1 || cleaned.Cleaned[0].ID != p.ID {
		t.Errorf("%+v, %v", cleaned, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "s", "*")); len(left) != 2 {
		t.Errorf("left on disk %v", left)
	}
}

// The end of a process and a call that gives it no input both close it, and whoever
// writes to it may come third.
func TestInputIsClosedTwice(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := &process{record: tool.Process{ID: "p-1", Status: tool.ProcessRunning}, stdin: w}
	for range 2 {
		if err := p.closeStdin(); err != nil {
			t.Fatal(err)
		}
	}
	all := &registry{processes: map[string]*process{"p-1": p}}
	if _, err := all.write(t.Context(), "p-1", []byte("late")); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a write to an input that was closed: %v", err)
	}
}
