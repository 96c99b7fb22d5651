//go:build unix

package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

const secretValue = "s3cr3t value\nof two lines"

// playing is a binding whose adapter plays a part.
func playing(t *testing.T, part string, args ...string) backends.Binding {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return backends.Binding{
		Session: "s-1", Environment: "caisson-1", StateDir: t.TempDir(),
		Profile: profile.Profile{
			Name: "p", Backend: profile.Command, Workspace: "/w",
			Command:        append([]string{self, "adapter", part}, args...),
			PermissionMode: tool.Standard, MaxPermissionMode: tool.Standard,
			Timeout: time.Minute, ShutdownTimeout: time.Minute, MaxOutputBytes: 1 << 20,
		},
		Secrets: backends.Secrets{
			Token: strings.Repeat("5e", 32), Environment: map[string]string{"HIDDEN": secretValue},
		},
	}
}

// open opens an environment that has to work, and lets go of it with the test.
func open(t *testing.T, b backends.Binding, o Options) backends.Environment {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	e, err := New(o).Open(ctx, b, nil)
	if err != nil {
		t.Fatalf("open: %v (%s)", err, tool.HintOf(err))
	}
	t.Cleanup(func() { _ = e.Detach(context.Background()) })
	return e
}

func call(ctx context.Context, e backends.Environment, name, arguments string) (string, error) {
	r, err := e.Call(ctx, tool.Request{ID: "c", Name: name, Arguments: json.RawMessage(arguments), MaxOutputBytes: 1 << 20})
	if err != nil || len(r.Content) == 0 {
		return "", err
	}
	return r.Content[0].Text, nil
}

func bash(t *testing.T, e backends.Environment, line string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	return call(ctx, e, "bash", `{"command":"`+line+`"}`)
}

func lines(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// until waits for a line in a file.
func until(t *testing.T, file, line string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("%s never said %q: %q", file, line, lines(t, file))
		}
	}()
	eventually(t, func() bool { return slices.Contains(lines(t, file), line) })
}

// eventually waits for what must happen.
func eventually(t *testing.T, happened func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !happened() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("it never happened")
		}
	}
}

// TestBadAdapters: what is no adapter is said to be none, once, in time, and with
// what it said itself.
func TestBadAdapters(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	for name, test := range map[string]struct {
		command []string
		part    string
		o       Options
		kind    tool.Kind
		says    []string
	}{
		"missing":         {command: []string{"no-such-adapter-anywhere"}, kind: tool.BackendUnavailable, says: []string{"no-such-adapter-anywhere", "not found"}},
		"missing path":    {command: []string{"/no/such/adapter"}, kind: tool.BackendUnavailable, says: []string{"/no/such/adapter", "no such file"}},
		"relative":        {command: []string{"./adapter"}, kind: tool.ConfigInvalid, says: []string{"absolute path"}},
		"not executable":  {command: []string{"/etc/passwd"}, kind: tool.BackendUnavailable, says: []string{"permission denied"}},
		"not a program":   {command: []string{"/etc"}, kind: tool.BackendUnavailable, says: []string{"/etc"}},
		"exits at once":   {part: "missing-library", kind: tool.BackendUnavailable, says: []string{"exit status 127", "error while loading libsomething.so"}},
		"exits well":      {part: "nothing", kind: tool.BackendUnavailable, says: []string{"ended by itself"}},
		"garbage":         {part: "garbage", kind: tool.BackendUnavailable, says: []string{"Usage: something else entirely"}},
		"silent":          {part: "silent", o: Options{HandshakeTimeout: 300 * time.Millisecond}, kind: tool.BackendUnavailable, says: []string{"did not answer initialize in time"}},
		"no root":         {part: "rootless", kind: tool.ProtocolMismatch, says: []string{`the root "w"`}},
		"deaf":            {part: "deaf", o: Options{HandshakeTimeout: 300 * time.Millisecond}, kind: tool.BackendUnavailable, says: []string{"did not answer initialize in time"}},
		"another version": {part: "version", kind: tool.ProtocolMismatch, says: []string{"protocol 3", "speaks 4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := playing(t, test.part, log)
			if test.command != nil {
				b.Profile.Command = test.command
			}
			begun := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			e, err := New(test.o).Open(ctx, b, nil)
			if err == nil {
				_ = e.Detach(ctx)
				t.Fatal("it was opened")
			}
			if tool.KindOf(err) != test.kind {
				t.Errorf("%v is %s, want %s", err, tool.KindOf(err), test.kind)
			}
			for _, words := range test.says {
				if !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(words)) {
					t.Errorf("%q does not say %q", err, words)
				}
			}
			if hint := tool.HintOf(err); hint == "" && test.kind == tool.BackendUnavailable {
				t.Errorf("%v has no hint", err)
			}
			if took := time.Since(begun); took > 15*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// TestVersionBeforeAnything: nothing was sent to an adapter of another version but
// initialize, and it ended in order.
func TestVersionBeforeAnything(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	if _, err := New(Options{}).Open(t.Context(), playing(t, "version", log), nil); tool.KindOf(err) != tool.ProtocolMismatch {
		t.Fatal(err)
	}
	until(t, log, "ended in order")
}

// TestSecretsOfWhatItSays: the end of what an adapter says comes with the error, and
// without what is secret in it, however it is written.
func TestSecretsOfWhatItSays(t *testing.T) {
	_, err := New(Options{}).Open(t.Context(), playing(t, "leaks-secrets"), nil)
	if err == nil || !strings.Contains(err.Error(), `"HIDDEN":"[secret]`) {
		t.Fatalf("it says %v", err)
	}
	if s := err.Error(); len(s) > stderrBytes+1000 || strings.Contains(s, "s3cr3t") || strings.Contains(s, "two lines") || strings.Contains(s, strings.Repeat("5e", 32)) {
		t.Errorf("%d bytes: %s", len(s), s)
	}
}

// TestSecretsInReplies: an adapter that puts what it was told into its errors, or
// breaks the protocol with it, does not make that an error of ours.
func TestSecretsInReplies(t *testing.T) {
	check := func(err error, says ...string) {
		t.Helper()
		if err == nil {
			t.Fatal("no error")
		}
		for _, words := range append(says, "[secret]") {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not say %q", err, words)
			}
		}
		for _, secret := range append(strings.Split(secretValue, "\n"), strings.Repeat("5e", 32)) {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q holds %q", err, secret)
			}
		}
	}
	_, err := New(Options{}).Open(t.Context(), playing(t, "leaks-in-replies", wire.MethodInitialize), nil)
	check(err, `"root":"/w"`)
	e := open(t, playing(t, "leaks-in-replies", wire.MethodExecute, wire.MethodRunCode), Options{})
	_, err = call(t.Context(), e, "read_file", `{}`)
	check(err, "read_file: cannot")
	_, err = e.(backends.CodeRunner).RunCode(t.Context(), backends.CodeRequest{Code: "1"})
	check(err, "cannot")
	e = open(t, playing(t, "leaks-in-garbage"), Options{})
	said := e.(*environment).host.current.stderr
	eventually(t, func() bool { return said.String() != "" })
	_, err = call(t.Context(), e, "read_file", `{}`)
	check(err, "not a frame", "debug: ", "it said: reading the settings")
}

// TestWhatItIsGiven: the profile's variables are for commands and travel over the
// connection; the adapter has the user's, and runs nowhere near an opened folder.
func TestWhatItIsGiven(t *testing.T) {
	t.Setenv("OF_THE_USER", "yes")
	b := playing(t, "plain", filepath.Join(t.TempDir(), "log"))
	b.WorkspaceFolder = t.TempDir()
	e := open(t, b, Options{Tools: []tool.Description{{Name: "read_file"}}})
	text, err := call(t.Context(), e, "read_file", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Dir   string
		Argv  []string
		Own   []string
		Given map[string]string
	}
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	own := strings.Join(append(got.Own, got.Argv...), "\n")
	if got.Given["HIDDEN"] != secretValue || len(got.Given) != 1 || strings.Contains(own, "s3cr3t") || !strings.Contains(own, "OF_THE_USER=yes") {
		t.Errorf("given %v, own %v", got.Given, got.Own)
	}
	if got.Dir == b.WorkspaceFolder || got.Dir != home() {
		t.Errorf("it runs in %s", got.Dir)
	}
	if info := e.Info(); info.Root != "/w" || info.Backend != profile.Command {
		t.Errorf("%+v", info)
	}
	if list, err := e.Tools(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("its tools: %v, %v", list, err)
	}
}

// TestWithoutProcesses: what an adapter has not announced it is not asked for, and
// nobody else answers in its place.
func TestWithoutProcesses(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := open(t, playing(t, "plain", log), Options{})
	_, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "true", Actor: "s-1"})
	if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), wire.CapProcessStart) {
		t.Errorf("process/start: %v", err)
	}
	if _, err := call(t.Context(), e, "bash", `{"command":"true","run_in_background":true}`); err == nil || !strings.Contains(err.Error(), "this adapter has no processes") {
		t.Errorf("in the background: %v", err)
	}
	if _, err := e.(backends.FileSystem).Stat(t.Context(), "f"); tool.KindOf(err) != tool.Unsupported {
		t.Errorf("fs/stat: %v", err)
	}
	if _, err := call(t.Context(), e, "teleport", `{}`); tool.KindOf(err) != tool.ToolNotFound {
		t.Errorf("an unknown tool: %v", err)
	}
	if _, err := e.(backends.CodeRunner).RunCode(t.Context(), backends.CodeRequest{Code: "x"}); err == nil {
		t.Error("a program ran")
	}
	for _, l := range lines(t, log) {
		if l == wire.MethodProcessStart || l == wire.MethodStat {
			t.Errorf("it was asked for %s", l)
		}
	}
}

// TestForeignProcesses: an adapter's processes as the contract has them: the reply
// to a start is checked, output is text, and that it is complete is found out.
func TestForeignProcesses(t *testing.T) {
	e := open(t, playing(t, "plain", filepath.Join(t.TempDir(), "log"), wire.CapProcessStart), Options{})
	ps := e.Processes()
	if _, err := ps.Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "forget the operation", Actor: "s-1"}); tool.KindOf(err) != tool.OutcomeUnknown {
		t.Errorf("a start without its operation: %v", err)
	}
	p, err := ps.Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "true", Actor: "s-1"})
	if err != nil {
		t.Fatal(err)
	}
	if p.OperationID != "o" {
		t.Errorf("started %+v", p)
	}
	got, err := ps.Read(t.Context(), p.ID, tool.ReadOptions{})
	if err != nil || !strings.HasPrefix(string(got.Output), "ä") {
		t.Errorf("read %q, %v", got.Output, err)
	}
	for what, err := range map[string]error{
		"binary input": ignore(ps.Write(t.Context(), p.ID, []byte{0xff})),
		"signal":       ignore(ps.Signal(t.Context(), p.ID, "SIGINT")),
		"close stdin":  ignore(ps.CloseStdin(t.Context(), p.ID)),
	} {
		if tool.KindOf(err) != tool.Unsupported {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func ignore[T any](_ T, err error) error { return err }

// TestForeignExport: an export comes chunk by chunk.
func TestForeignExport(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := open(t, playing(t, "plain", log), Options{})
	r, err := e.Export(t.Context(), "token")
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err := errors.Join(err, r.Close()); err != nil || string(data) != string(exported()) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	until(t, log, wire.MethodExportClose)
}

// TestDeath: when an adapter dies, what was in flight has an unknown outcome and is
// not sent again; the next call starts it anew, and it has to find its workspace.
func TestDeath(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := open(t, playing(t, "plain", log), Options{})
	events := e.Events().Subscribe()
	defer events.Close()
	_, err := bash(t, e, "die")
	if tool.KindOf(err) != tool.OutcomeUnknown || !strings.Contains(err.Error(), "exit status 7") || !strings.Contains(err.Error(), "panic: out of luck") {
		t.Fatalf("the call in flight: %v", err)
	}
	if text, err := bash(t, e, "again"); err != nil || text != "answered again" {
		t.Fatalf("the next call: %q, %v", text, err)
	}
	var begun []wire.Initialize
	executed := 0
	for _, l := range lines(t, log) {
		if raw, ok := strings.CutPrefix(l, "initialize "); ok {
			var in wire.Initialize
			if err := json.Unmarshal([]byte(raw), &in); err != nil {
				t.Fatal(err)
			}
			begun = append(begun, in)
		}
		if l == wire.MethodExecute {
			executed++
		}
	}
	if len(begun) != 2 || executed != 2 {
		t.Fatalf("%d starts, %d calls", len(begun), executed)
	}
	if begun[0].RequireExistingWorkspace || !begun[1].RequireExistingWorkspace {
		t.Errorf("the first demand %+v, the second %+v", begun[0], begun[1])
	}
	begun[1].RequireExistingWorkspace = false
	if a, b := encoded(t, begun[0]), encoded(t, begun[1]); a != b {
		t.Errorf("the bindings differ:\n%s\n%s", a, b)
	}
	if begun[0].RemoveWorkspaceOnExit || begun[0].Identity != "caisson-1" || begun[0].Session != "s-1" || begun[0].Root != "/w" {
		t.Errorf("bound to %+v", begun[0])
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// TestWorkspaceGoneWithIt: an adapter that died with its workspace refuses to begin
// anew, and says why at each call.
func TestWorkspaceGoneWithIt(t *testing.T) {
	b := playing(t, "plain", filepath.Join(t.TempDir(), "log"))
	b.Profile.Workspace = "/w/gone"
	e := open(t, b, Options{})
	if _, err := bash(t, e, "die"); tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := bash(t, e, "again"); err == nil || !strings.Contains(err.Error(), "the workspace is gone") {
			t.Errorf("the next call: %v", err)
		}
	}
}

// TestGarbageEndsTheConnection: what an adapter prints between frames ends it, and
// is quoted.
func TestGarbageEndsTheConnection(t *testing.T) {
	e := open(t, playing(t, "late-garbage"), Options{})
	for range 2 {
		_, err := bash(t, e, "x")
		if tool.KindOf(err) != tool.OutcomeUnknown || !strings.Contains(err.Error(), "debug: about to answer") {
			t.Errorf("%v", err)
		}
	}
}

// TestCancel: a cancelled call ends when the adapter has ended it.
func TestCancel(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	e := open(t, playing(t, "plain", log), Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := call(ctx, e, "bash", `{"command":"wait"}`)
		done <- err
	}()
	until(t, log, "waits")
	cancel()
	if err := <-done; tool.KindOf(err) != tool.Cancelled {
		t.Error(err)
	}
	if text, err := bash(t, e, "again"); err != nil || text != "answered again" {
		t.Errorf("afterwards: %q, %v", text, err)
	}
}
