package tools

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
)

// fakeCommands answers as it is told and keeps what it was asked.
type fakeCommands struct {
	command process.Command
	result  process.Result
	err     error

	start  tool.StartRequest
	record tool.Process
	read   tool.ReadOptions
	reads  []tool.ReadOptions
	output tool.ReadResult
	input  string
	asked  []string
}

func (f *fakeCommands) Run(_ context.Context, c process.Command) (process.Result, error) {
	f.command = c
	return f.result, f.err
}

func (f *fakeCommands) Start(_ context.Context, r tool.StartRequest) (tool.Process, error) {
	f.start = r
	return f.record, f.err
}

func (f *fakeCommands) List(context.Context) ([]tool.Process, error) {
	return []tool.Process{f.record}, f.err
}

func (f *fakeCommands) Get(_ context.Context, id string) (tool.Process, error) {
	f.asked = append(f.asked, "get "+id)
	return f.record, f.err
}

func (f *fakeCommands) Read(_ context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	f.asked = append(f.asked, "read "+id)
	f.read = o
	f.reads = append(f.reads, o)
	return f.output, f.err
}

func (f *fakeCommands) Write(_ context.Context, id string, data []byte) (tool.Process, error) {
	f.asked = append(f.asked, "write "+id)
	f.input = string(data)
	return f.record, f.err
}

func (f *fakeCommands) Stop(_ context.Context, id string) (tool.Process, error) {
	f.asked = append(f.asked, "stop "+id)
	return f.record, f.err
}

func withCommands(t testing.TB, f Commands) *bench {
	return newBench(t, map[string]string{"sub/file": ""}, func(o *Options) { o.Commands = f })
}

func TestBash(t *testing.T) {
	f := &fakeCommands{result: process.Result{ExitCode: 3, Stdout: []byte("out\xff"), Stderr: []byte("err"), Duration: 1500 * time.Millisecond}}
	b := withCommands(t, f)
	r := request(t, "bash", args{"command": "make", "cwd": "sub", "timeout_seconds": 7})
	r.Actor, r.Mode = tool.Actor{ID: "helper"}, tool.ReadOnly
	if _, err := b.Call(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if want := (process.Command{Command: "make", CWD: b.dir + "/sub", Timeout: 7 * time.Second, Actor: tool.Actor{ID: "helper"}, Mode: tool.ReadOnly, MaxOutputBytes: DefaultOutputBytes}); !reflect.DeepEqual(f.command, want) {
		t.Errorf("run was %+v, want %+v", f.command, want)
	}
	want(t, b.call("bash", args{"command": "make"}), args{
		"command": "make", "exit_code": 3, "stdout": "out\ufffd", "stderr": "err", "duration_ms": 1500, "timed_out": false, "stdout_truncated": false, "stderr_truncated": false,
	})
	if f.command.Timeout != defaultTimeout*time.Second || f.command.Mode != tool.Standard || f.command.CWD != b.dir {
		t.Errorf("run was %+v", f.command)
	}
	f.result = process.Result{ExitCode: -1, TimedOut: true, PromotedProcessID: "p-1", StdoutTruncated: true, Stdout: []byte("caf\xc3"), SandboxDenied: true, Mode: tool.ReadOnly}
	got := b.call("bash", args{"command": "x"})
	want(t, got, args{"timed_out": true, "promoted_process_id": "p-1", "stdout_truncated": true, "stdout": "caf", "sandbox_denied": true})
	if !strings.Contains(got["hint"].(string), "standard") {
		t.Errorf("the hint is %q", got["hint"])
	}
	f.err = tool.Errorf(tool.Unsupported, "there is no shell")
	b.fails(tool.Unsupported, request(t, "bash", args{"command": "x"}))

	b.refused("command is empty", "bash", args{"command": " \n"})
	b.refused("NUL", "bash", args{"command": "a\x00b"})
	b.refused("write it into a file", "bash", args{"command": strings.Repeat("x", maxCommand)})
	b.refused("timeout_seconds is 0", "bash", args{"command": "x", "timeout_seconds": 0})
	b.refused("timeout_seconds is 3601", "bash", args{"command": "x", "timeout_seconds": 3601})
	b.refused("not a directory", "bash", args{"command": "x", "cwd": "sub/file"})
	b.fails(tool.PathOutsideRoot, request(t, "bash", args{"command": "x", "cwd": "/"}))
}

// TestOutputThatGrowsWhenEncoded: a result stays within its limit whatever the
// bytes are.
func TestOutputThatGrowsWhenEncoded(t *testing.T) {
	for _, unit := range []string{"\x01", "\xff", "\"", "a", "é"} {
		full := []byte(strings.Repeat(unit, maxOutputBytes/len(unit)))
		for _, r := range []process.Result{{Stdout: full}, {Stderr: full}, {Stdout: full, Stderr: full}} {
			f := &fakeCommands{result: r}
			b := newBench(t, nil, func(o *Options) { o.Commands, o.MaxOutputBytes = f, maxOutputBytes })
			res := b.result("bash", args{"command": "x"})
			if n := len(res.StructuredContent); n > maxEncoded+4096 {
				t.Errorf("%q: %d bytes", unit, n)
			}
		}
	}
	f := &fakeCommands{result: process.Result{Stdout: []byte(strings.Repeat("a", maxOutputBytes))}}
	b := newBench(t, nil, func(o *Options) { o.Commands, o.MaxOutputBytes = f, 10*maxOutputBytes })
	if got := b.call("bash", args{"command": "x"}); len(got["stdout"].(string)) != maxOutputBytes || f.command.MaxOutputBytes != maxOutputBytes {
		t.Errorf("%d bytes of %d", len(got["stdout"].(string)), f.command.MaxOutputBytes)
	}
}

func TestBackground(t *testing.T) {
	f := &fakeCommands{record: tool.Process{ID: "p-1", ExitCode: -1, Status: tool.ProcessRunning}}
	b := withCommands(t, f)
	want(t, b.call("bash", args{"command": "serve", "run_in_background": true, "cwd": "sub"}), args{"promoted_process_id": "p-1", "exit_code": -1, "timed_out": false})
	first := f.start
	b.call("bash", args{"command": "serve", "run_in_background": true})
	if first.OperationID == "" || first.OperationID == f.start.OperationID {
		t.Errorf("two starts are one operation %q", first.OperationID)
	}
	if first.CWD != b.dir+"/sub" || first.Command != "serve" || first.PermissionMode != tool.Standard {
		t.Errorf("start was %+v", first)
	}
}

// Where everything ends with its call nothing runs in the background, and what
// takes too long is killed and says so.
func TestForeground(t *testing.T) {
	f := &fakeCommands{}
	b := newBench(t, map[string]string{"sub/file": ""}, func(o *Options) { o.Commands, o.Foreground = f, true })
	for name, r := range map[string]tool.Request{
		"process":    request(t, "process", args{"action": "list"}),
		"background": request(t, "bash", args{"command": "make", "run_in_background": true}),
	} {
		_, err := b.Call(t.Context(), r)
		var failure *tool.Error
		if !errors.As(err, &failure) || failure.Kind != tool.Unsupported || !strings.Contains(failure.Hint, "per_session") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, d := range b.Descriptions() {
		if d.Name == "process" || strings.Contains(string(d.InputSchema), "background") || strings.Contains(d.Description, "background") {
			t.Errorf("%s is offered: %s", d.Name, d.Description)
		}
	}
	waits := waitingCommands{f}
	b = newBench(t, map[string]string{"sub/file": ""}, func(o *Options) { o.Commands, o.Foreground = waits, true })
	result, err := b.Call(t.Context(), request(t, "bash", args{"command": "make", "timeout_seconds": 1}))
	if err != nil {
		t.Fatal(err)
	}
	var ran commandResult
	if err := json.Unmarshal(result.StructuredContent, &ran); err != nil {
		t.Fatal(err)
	}
	if !ran.TimedOut || ran.PromotedProcessID != "" || ran.Stdout != "so far" || !strings.Contains(ran.Hint, "killed") {
		t.Errorf("after the timeout: %+v", ran)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Call(ctx, request(t, "bash", args{"command": "make"})); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("a cancelled call: %v", err)
	}
}

// waitingCommands run until they are killed.
type waitingCommands struct{ *fakeCommands }

func (waitingCommands) Run(ctx context.Context, c process.Command) (process.Result, error) {
	if c.Timeout > 0 {
		return process.Result{}, errors.New("it would be adopted")
	}
	<-ctx.Done()
	return process.Result{ExitCode: -1, Stdout: []byte("so far")}, tool.Errorf(tool.Timeout, "too long")
}

// halfCommands have half a character, and the rest once it is waited for.
type halfCommands struct{ *fakeCommands }

func (h halfCommands) Read(ctx context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	r, err := h.fakeCommands.Read(ctx, id, o)
	if *o.OffsetBytes == 7 {
		h.output = tool.ReadResult{Output: []byte("é"), StartOffset: 6, EndOffset: 8, TotalBytes: 8}
	}
	return r, err
}

func TestProcessToolHalfCharacter(t *testing.T) {
	f := &fakeCommands{output: tool.ReadResult{Output: []byte("\xc3"), StartOffset: 6, EndOffset: 7, TotalBytes: 7}}
	b := newBench(t, nil, func(o *Options) { o.Commands = halfCommands{f} })
	read := args{"action": "read", "process_id": "p-1", "offset_bytes": 6, "wait_ms": 60_000}
	want(t, b.call("process", read), args{"output": "é", "start_offset": 6, "end_offset": 8, "timed_out": false, "lossy": nil})
	f.output = tool.ReadResult{Output: []byte("\xc3"), StartOffset: 6, EndOffset: 7, TotalBytes: 7, TimedOut: true}
	b = newBench(t, nil, func(o *Options) { o.Commands = f })
	want(t, b.call("process", read), args{"output": "", "start_offset": 6, "end_offset": 6, "timed_out": true, "lossy": nil})
}

func TestProcessTool(t *testing.T) {
	f := &fakeCommands{
		record: tool.Process{ID: "p-1", Status: tool.ProcessRunning, TotalBytes: 10, ExitCode: -1},
		output: tool.ReadResult{Process: tool.Process{ID: "p-1"}, Output: []byte("caf\xc3"), StartOffset: 6, EndOffset: 10, TotalBytes: 10},
	}
	b := withCommands(t, f)
	want(t, b.call("process", args{"action": "list"})["processes"].([]any)[0].(map[string]any), args{"id": "p-1"})
	want(t, b.call("process", args{"action": "read", "process_id": "p-1", "offset_bytes": 6, "wait_ms": 50}), args{"output": "caf", "start_offset": 6, "end_offset": 9, "total_bytes": 10, "eof": false})
	if f.read.Wait != 50*time.Millisecond || *f.read.OffsetBytes != 6 || f.read.MaxBytes != maxProcessBytes {
		t.Errorf("read was %+v", f.read)
	}
	for _, output := range []string{"> ", "done\n", "café", "\xff"} {
		f.output.Output = []byte(output)
		got := b.call("process", args{"action": "read", "process_id": "p-1"})
		want(t, got, args{"output": strings.ToValidUTF8(output, "\ufffd"), "end_offset": 6 + len(output), "eof": false})
	}
	// A tail begins anywhere, and less than a character is no page.
	f.output.Output = []byte("\xa9 café\xc3")
	want(t, b.call("process", args{"action": "read", "process_id": "p-1", "max_bytes": 1}), args{"output": " café", "start_offset": 7, "end_offset": 13, "lossy": nil})
	if f.read.MaxBytes != utf8.UTFMax {
		t.Errorf("read was %+v", f.read)
	}
	f.output.Output = []byte("\xc3")
	want(t, b.call("process", args{"action": "read", "process_id": "p-1", "offset_bytes": 6}), args{"output": "", "end_offset": 6, "lossy": nil})
	f.output.Output = []byte("> ")
	f.asked, f.reads = nil, nil
	b.call("process", args{"action": "read", "process_id": "p-1", "wait_ms": 50})
	if len(f.reads) != 2 || f.reads[0].OffsetBytes == nil || *f.reads[0].OffsetBytes != 10 || f.reads[0].Wait != 50*time.Millisecond || f.reads[1].OffsetBytes != nil {
		t.Errorf("waiting for more than the tail asked %+v", f.reads)
	}
	f.output.Output = []byte("caf\xc3")
	f.output.Process.OutputClosed = true
	want(t, b.call("process", args{"action": "read", "process_id": "p-1"}), args{"output": "caf\ufffd", "end_offset": 10, "eof": true, "lossy": true})
	if f.read.OffsetBytes != nil || f.read.MaxBytes != defaultTail {
		t.Errorf("read was %+v", f.read)
	}
	b.call("process", args{"action": "write", "process_id": "p-1", "input": "yes\n"})
	if f.input != "yes\n" {
		t.Errorf("it wrote %q", f.input)
	}
	b.call("process", args{"action": "stop", "process_id": "p-1"})
	f.asked = nil
	want(t, b.call("process", args{"action": "update", "process_id": "p-1", "wait_ms": 5}), args{"process": b.call("process", args{"action": "update", "process_id": "p-1", "wait_ms": 5})["process"]})
	if *f.read.OffsetBytes != 10 || f.read.Wait != 5*time.Millisecond || !slices.Contains(f.asked, "read p-1") {
		t.Errorf("update asked %q, %+v", f.asked, f.read)
	}
	f.record.Status, f.asked = tool.ProcessStopped, nil
	b.call("process", args{"action": "update", "process_id": "p-1", "wait_ms": 5})
	if slices.Contains(f.asked, "read p-1") {
		t.Error("it waits for a process that has ended")
	}
	b.refused("process_id is missing", "process", args{"action": "read"})
	b.refused("input is missing", "process", args{"action": "write", "process_id": "p-1"})
	b.refused("action is", "process", args{"action": "kill"})
	for _, action := range []string{"write", "stop"} {
		r := request(t, "process", args{"action": action, "process_id": "p-1", "input": ""})
		r.Mode = tool.ReadOnly
		b.fails(tool.Denied, r)
	}
	testSteering(t, b, f)
	f.err = tool.Errorf(tool.ProcessNotFound, "there is no process p-2")
	b.fails(tool.ProcessNotFound, request(t, "process", args{"action": "update", "process_id": "p-2"}))
}

// testSteering: in read_only an actor steers what it has started in that mode.
func testSteering(t *testing.T, b *bench, f *fakeCommands) {
	side := tool.Actor{ID: "a", Kind: tool.ActorSideChat}
	f.record.SandboxMode = tool.ReadOnly
	for _, tt := range []struct {
		owner  tool.Process
		caller tool.Actor
		mode   tool.Mode
		may    bool
	}{
		{tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: "a", ActorKind: tool.ActorSideChat}, side, "", true},
		{tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: "b", ActorKind: tool.ActorSideChat}, side, "", false},
		{tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: "a"}, side, "", false},
		{tool.Process{OwnerKind: tool.OwnerMainAgent, OwnerID: "s"}, side, "", false},
		{tool.Process{OwnerKind: tool.OwnerMainAgent, OwnerID: "s"}, side, tool.Standard, false},
		{tool.Process{OwnerKind: tool.OwnerMainAgent, OwnerID: "s"}, tool.Actor{}, tool.ReadOnly, true},
		{tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: "a"}, tool.Actor{}, tool.ReadOnly, false},
		{tool.Process{OwnerKind: tool.OwnerSubagent, OwnerID: "a", ActorKind: tool.ActorSideChat}, tool.Actor{}, tool.Standard, true},
		{tool.Process{OwnerKind: tool.OwnerMainAgent, OwnerID: "s"}, tool.Actor{ID: "b", Kind: tool.ActorSubagent}, tool.Standard, true},
	} {
		f.record.OwnerKind, f.record.OwnerID, f.record.ActorKind = tt.owner.OwnerKind, tt.owner.OwnerID, tt.owner.ActorKind
		for _, action := range []string{"write", "stop"} {
			f.asked = nil
			r := request(t, "process", args{"action": action, "process_id": "p-1", "input": ""})
			r.Actor, r.Mode = tt.caller, tt.mode
			_, err := b.Call(t.Context(), r)
			if (err == nil) != tt.may || !tt.may && tool.KindOf(err) != tool.Denied {
				t.Errorf("%s by %+v in %q of %+v: %v", action, tt.caller, tt.mode, tt.owner, err)
			}
		}
	}
	// What has wider rights than its owner has now is not steered.
	f.record.OwnerKind, f.record.SandboxMode = tool.OwnerMainAgent, tool.Standard
	r := request(t, "process", args{"action": "stop", "process_id": "p-1"})
	r.Mode = tool.ReadOnly
	b.fails(tool.Denied, r)
}

// realCommands runs argument lists without confinement, for the tests of git.
type realCommands struct {
	fakeCommands
	env []string
}

func (r *realCommands) Run(ctx context.Context, c process.Command) (process.Result, error) {
	r.command = c
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.Dir, cmd.Env = c.CWD, append(os.Environ(), r.env...)
	for name, value := range c.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return process.Result{}, err
	}
	return process.Result{ExitCode: cmd.ProcessState.ExitCode(), Stdout: []byte(stdout.String()), Stderr: []byte(stderr.String())}, nil
}

func gitBench(t *testing.T) (*bench, *realCommands) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed, and in CI nothing may be skipped")
		}
		t.Skip("git is not installed")
	}
	home := t.TempDir()
	config := filepath.Join(home, "config")
	if err := os.WriteFile(config, []byte("[user]\nname = n\nemail = e@example.com\n[init]\ndefaultBranch = main\n[core]\npager = false\neditor = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := &realCommands{env: []string{"HOME=" + home, "GIT_CONFIG_GLOBAL=" + config, "GIT_CONFIG_NOSYSTEM=1"}}
	return withCommands(t, r), r
}

func (b *bench) git(want string, a ...string) map[string]any {
	b.t.Helper()
	got := b.call("git", args{"subcommand": a[0], "args": a[1:]})
	if got["exit_code"] != 0.0 || !strings.Contains(got["stdout"].(string)+got["stderr"].(string), want) {
		b.t.Fatalf("git %q: %v", a, got)
	}
	return got
}

func TestGit(t *testing.T) {
	b, r := gitBench(t)
	b.git("", "init", "-q")
	b.put("file", "one\n")
	b.git("", "add", "--", "file")
	b.git("", "commit", "-q", "-m", "two words; $(touch PROOF)")
	if _, err := os.Stat(filepath.Join(b.dir, "PROOF")); err == nil {
		t.Fatal("a shell has seen the arguments")
	}
	b.git("two words; $(touch PROOF)", "log", "--format=%s")
	b.put("file", "two\n")
	b.git("+two", "diff")
	want(t, b.git("", "status", "--short"), args{"command": "git status --short", "stdout": " M file\n?? sub/\n"})
	// An editor that the configuration names would fail; nobody is asked.
	b.git("", "commit", "-q", "-a", "--amend")
	b.git("git version", "--version")
	if got := b.call("git", args{"subcommand": "nosuch"}); got["exit_code"] == 0.0 {
		t.Errorf("git nosuch: %v", got)
	}
	if got := b.call("git", args{"subcommand": "clone", "args": []string{"https://user@127.0.0.1:1/x"}}); got["exit_code"] == 0.0 {
		t.Errorf("a clone of nothing: %v", got)
	}
	status := request(t, "git", args{"subcommand": "status"})
	status.Mode = tool.ReadOnly
	if _, err := b.Call(t.Context(), status); err != nil || r.command.Env["GIT_OPTIONAL_LOCKS"] != "0" || r.command.Mode != tool.ReadOnly {
		t.Errorf("in read_only it ran %+v, %v", r.command, err)
	}
	b.refused("subcommand is missing", "git", nil)
	b.refused("one word", "git", args{"subcommand": "status --short"})
	b.refused("NUL", "git", args{"subcommand": "add", "args": []string{"a\x00"}})
	b.refused("arguments with", "git", args{"subcommand": "add", "args": slices.Repeat([]string{"a"}, maxGitArgs+1)})
}

func TestGitInAWorktree(t *testing.T) {
	b, r := gitBench(t)
	b.git("", "init", "-q")
	b.git("", "commit", "-q", "--allow-empty", "-m", "first")
	linked := filepath.Join(t.TempDir(), "linked")
	b.git("", "worktree", "add", "-q", linked)
	inLinked := newBenchAt(t, linked, r)
	inLinked.put("new", "x\n")
	inLinked.git("", "add", "new")
	inLinked.git("", "commit", "-q", "-m", "from the worktree")
	b.git("from the worktree", "log", "--all", "--format=%s")
}

// newBenchAt is a set of tools on an existing directory.
func newBenchAt(t *testing.T, dir string, c Commands) *bench {
	t.Helper()
	b := newBench(t, nil)
	root := openRoot(t, dir)
	return &bench{t, New(Options{Root: root, Exports: b.o.Exports, Commands: c}), root.Dir()}
}

// TestAsRootGitOfAnotherUser trusts a workspace that belongs to somebody else, and
// no other directory.
func TestAsRootGitOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	b, _ := gitBench(t)
	b.git("", "init", "-q")
	b.git("", "init", "-q", "inner")
	err := filepath.WalkDir(b.dir, func(p string, _ os.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(p, 65534, 65534))
	})
	if err != nil {
		t.Fatal(err)
	}
	b.git("On branch main", "status")
	got := b.call("git", args{"subcommand": "-C", "args": []string{"inner", "status"}})
	if got["exit_code"] == 0.0 || !strings.Contains(got["stderr"].(string), "dubious ownership") {
		t.Errorf("another directory: %v", got)
	}
	// A directory below a repository, and one whose name is a pattern to git.
	for _, name := range []string{"below", "*"} {
		dir := filepath.Join(b.dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		at := newBenchAt(t, dir, b.o.Commands)
		for _, where := range []string{".", "../inner"} {
			got := at.call("git", args{"subcommand": "-C", "args": []string{where, "status"}})
			if got["exit_code"] == 0.0 || !strings.Contains(got["stderr"].(string), "dubious ownership") {
				t.Errorf("%s from %s: %v", where, name, got)
			}
		}
	}
}

func TestGitEnvironmentAsksNobody(t *testing.T) {
	standard, readOnly := gitEnvironment(tool.Standard), gitEnvironment(tool.ReadOnly)
	if standard["GIT_TERMINAL_PROMPT"] != "0" || standard["GIT_OPTIONAL_LOCKS"] != "" {
		t.Errorf("standard: %v", standard)
	}
	maps.DeleteFunc(readOnly, func(name, value string) bool { return standard[name] == value })
	if len(readOnly) != 1 {
		t.Errorf("read_only adds %v", readOnly)
	}
}
