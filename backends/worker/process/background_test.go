//go:build linux

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestBackgroundProcess(t *testing.T) {
	m, r := newTest(t)
	p := startRequest(t, m, tool.StartRequest{
		Command: `printf 'a\0\377'; echo $WHO >&2; exit 3`, Environment: map[string]string{"WHO": "me"},
		Actor: "helper", Label: "a label", Lifecycle: tool.LifecycleManaged,
	})
	if p.Status != tool.ProcessRunning || p.PID == 0 || p.PGID != p.PID || p.ExitCode != -1 || !p.StoppedAt.IsZero() {
		t.Errorf("started as %+v", p)
	}
	if p.OwnerKind != tool.OwnerSubagent || p.OwnerID != "helper" || p.RootThreadID != "s1" || p.Label != "a label" || p.Lifecycle != tool.LifecycleManaged {
		t.Errorf("owned as %+v", p)
	}
	got := wait(t, m, p.ID)
	if got.Status != tool.ProcessStopped || got.ExitCode != 3 || got.Signal != "" || got.TerminalCause != string(tool.CauseNaturalExit) || got.StoppedAt.IsZero() {
		t.Errorf("ended as %+v", got)
	}
	if text := all(t, m, p.ID); text != "a\x00\xffme\n" {
		t.Errorf("output is %q", text)
	}
	r.until(t, p.ID, outputClosed)
	// Its output may have ended well before the process has.
	events := slices.DeleteFunc(r.of(p.ID), func(e tool.ProcessEvent) bool { return e.Type == tool.EventUpdated })
	if len(events) != 2 || events[0].Type != tool.EventStarted || events[1].Type != tool.EventStopped || events[1].Cause != tool.CauseNaturalExit {
		t.Errorf("events are %+v", events)
	}
}

func TestStartIsIdempotent(t *testing.T) {
	m, r := newTest(t)
	request := tool.StartRequest{OperationID: "op", Command: "sleep 100", Environment: map[string]string{"A": "1", "B": "2"}}
	first := startRequest(t, m, request)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := m.Start(t.Context(), request)
			if err != nil || again.ID != first.ID || again.PID != first.PID {
				t.Errorf("again: %+v, %v", again, err)
			}
		})
	}
	all.Wait()
	request.Environment["B"] = "3"
	if _, err := m.Start(t.Context(), request); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("another request with the same id: %v", err)
	}
	if n := len(r.of(first.ID)); n != 1 {
		t.Errorf("%d events of one start", n)
	}
	secret, err := os.ReadFile(filepath.Join(m.registry.dir, journalFile))
	if err != nil || strings.Contains(string(secret), `"B"`) {
		t.Errorf("the environment is on disk: %s %v", secret, err)
	}
}

func TestStartsAtOnceWithOneOperation(t *testing.T) {
	m, _ := newTest(t)
	ids := make([]string, 16)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() {
			p, err := m.Start(t.Context(), tool.StartRequest{OperationID: "one", Argv: []string{"sleep", "100"}})
			if err != nil {
				t.Error(err)
			}
			ids[i] = p.ID
		})
	}
	all.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("ids differ: %v", ids)
		}
	}
	if n := live(m); n != 1 {
		t.Errorf("%d processes live", n)
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	m, r := newTest(t, func(o *Options) { o.Shell = "/nonexistent/shell" })
	if err := os.WriteFile(filepath.Join(m.o.Root, "script"), []byte("#!/nonexistent/interpreter\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(m.o.Root, "data"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(m.o.Root, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		request tool.StartRequest
		kind    tool.Kind
		says    string
	}{
		{"no shell", tool.StartRequest{Command: "true"}, tool.Unsupported, "no shell: there is no /nonexistent/shell"},
		{"no program", tool.StartRequest{Argv: []string{"no-such-program"}}, tool.Unsupported, `no program "no-such-program"`},
		{"no program, and a directory that may not be looked into", tool.StartRequest{Argv: []string{"no-such-program"}, Environment: map[string]string{"PATH": "closed:/bin"}}, tool.Unsupported, `no program "no-such-program"`},
		{"no interpreter", tool.StartRequest{Argv: []string{"./script"}}, tool.Unsupported, "not the interpreter"},
		{"not executable", tool.StartRequest{Argv: []string{"./data"}}, tool.InvalidParams, "cannot be run"},
		{"both", tool.StartRequest{Command: "true", Argv: []string{"true"}}, tool.InvalidParams, "either"},
		{"neither", tool.StartRequest{}, tool.InvalidParams, "either"},
		{"no directory", tool.StartRequest{Argv: []string{"true"}, CWD: "missing"}, tool.InvalidParams, "working directory"},
		{"outside", tool.StartRequest{Argv: []string{"true"}, CWD: "/"}, tool.PathOutsideRoot, "outside the workspace"},
		{"NUL", tool.StartRequest{Argv: []string{"echo", "a\x00b"}}, tool.InvalidParams, `"a\x00b" holds a NUL`},
		{"NUL in a program", tool.StartRequest{Argv: []string{"a\x00b"}}, tool.InvalidParams, `"a\x00b" holds a NUL`},
		{"NUL in a variable", tool.StartRequest{Argv: []string{"true"}, Environment: map[string]string{"A": "x\x00"}}, tool.InvalidParams, `the value of "A" holds a NUL`},
		{"NUL in a variable's name", tool.StartRequest{Argv: []string{"true"}, Environment: map[string]string{"A\x00": "x"}}, tool.InvalidParams, "cannot be the name"},
		{"long line", tool.StartRequest{Command: strings.Repeat("x", 200_000)}, tool.InvalidParams, "200000 bytes"},
		{"no name", tool.StartRequest{Argv: []string{""}}, tool.InvalidParams, "empty name"},
		{"long list", tool.StartRequest{Argv: []string{"true", strings.Repeat("x", maxRecord)}}, tool.InvalidParams, "too long to be kept"},
		{"large variable", tool.StartRequest{Argv: []string{"true"}, Environment: map[string]string{"A": strings.Repeat("x", 200_000)}}, tool.InvalidParams, "too large"},
		{"variable of another name", tool.StartRequest{Argv: []string{"true"}, Environment: map[string]string{"A=B": "x"}}, tool.InvalidParams, `"A=B" cannot be the name`},
		{"variable without a name", tool.StartRequest{Argv: []string{"true"}, Environment: map[string]string{"": "x"}}, tool.InvalidParams, "cannot be the name"},
		{"unknown lifecycle", tool.StartRequest{Argv: []string{"true"}, Lifecycle: "forever"}, tool.InvalidParams, "no lifecycle"},
		{"unknown mode", tool.StartRequest{Argv: []string{"true"}, PermissionMode: "none"}, tool.InvalidParams, "no permission mode"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.request.OperationID = tt.name
			_, err := m.Start(t.Context(), tt.request)
			if tool.KindOf(err) != tt.kind || err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error is %q (%s)", err, tool.KindOf(err))
			}
			e, _ := errors.AsType[*tool.Error](err)
			if (tt.kind == tool.Unsupported || tt.says == "too large" || tt.says == "cannot be run" || tt.says == "working directory") && (e == nil || e.Hint == "") {
				t.Errorf("nothing is said of what to do next: %v", err)
			}
			list, err := m.List(t.Context())
			if err != nil || len(list) != 0 || live(m) != 0 || len(r.events) != 0 {
				t.Errorf("left behind: %v %v %d %v", list, err, live(m), r.events)
			}
		})
	}
	// Programs still run where there is no shell.
	if p := startRequest(t, m, tool.StartRequest{Argv: []string{"true"}, OperationID: "no program"}); wait(t, m, p.ID).ExitCode != 0 {
		t.Error("true failed")
	}
}

// A directory that may be seen and not entered is what the error is about, and
// not the program.
func TestForbiddenDirectory(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root has every right")
	}
	m, _ := newTest(t)
	if err := os.Mkdir(filepath.Join(m.o.Root, "closed"), 0); err != nil {
		t.Fatal(err)
	}
	_, err := m.Run(t.Context(), Command{Command: "true", CWD: "closed"})
	if tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), `closed" may not be entered`) {
		t.Errorf("error is %q (%s)", err, tool.KindOf(err))
	}
}

func TestCeiling(t *testing.T) {
	m, _ := newTest(t, func(o *Options) { o.DefaultMode, o.Ceiling = tool.ReadOnly, tool.ReadOnly })
	for _, mode := range []tool.Mode{tool.Standard, tool.Unconfined} {
		if _, err := m.Start(t.Context(), tool.StartRequest{Argv: []string{"true"}, PermissionMode: mode}); tool.KindOf(err) != tool.Denied {
			t.Errorf("start %s: %v", mode, err)
		}
		if _, err := m.Run(t.Context(), Command{Argv: []string{"true"}, Mode: mode}); tool.KindOf(err) != tool.Denied {
			t.Errorf("run %s: %v", mode, err)
		}
	}
}

// A grandchild that keeps the pipe open does not keep the process running, and
// its output comes.
func TestGrandchildHoldsOutput(t *testing.T) {
	m, r := newTest(t)
	fifo := filepath.Join(m.o.Root, "go")
	p := start(t, m, "mkfifo go; (read x < go; echo late) & echo early")
	got := wait(t, m, p.ID)
	if got.Status != tool.ProcessStopped || got.OutputClosed {
		t.Errorf("ended as %+v", got)
	}
	see(t, m, p.ID, "early\n")
	if err := os.WriteFile(fifo, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if e := r.until(t, p.ID, outputClosed); e.Type != tool.EventUpdated {
		t.Errorf("the end of output came as %+v", e)
	}
	if text := all(t, m, p.ID); text != "early\nlate\n" {
		t.Errorf("output is %q", text)
	}
}

func TestOtherSessionsIdsAreUnknown(t *testing.T) {
	m, _ := newTest(t)
	other, _ := newTest(t, func(o *Options) { o.StateDir, o.Session = m.o.StateDir, "s2" })
	p := start(t, m, "sleep 100")
	ctx := t.Context()
	calls := map[string]func() error{
		"get":    func() error { _, err := other.Get(ctx, p.ID); return err },
		"read":   func() error { _, err := other.Read(ctx, p.ID, tool.ReadOptions{}); return err },
		"write":  func() error { _, err := other.Write(ctx, p.ID, nil); return err },
		"close":  func() error { _, err := other.CloseStdin(ctx, p.ID); return err },
		"resize": func() error { _, err := other.Resize(ctx, p.ID, tool.TTY{Cols: 1, Rows: 1}); return err },
		"signal": func() error { _, err := other.Signal(ctx, p.ID, "KILL"); return err },
		"stop":   func() error { _, err := other.Stop(ctx, p.ID); return err },
		"wait":   func() error { _, err := other.Wait(ctx, p.ID); return err },
	}
	for name, call := range calls {
		if err := call(); tool.KindOf(err) != tool.ProcessNotFound {
			t.Errorf("%s: %v", name, err)
		}
	}
	if list, err := other.List(ctx); err != nil || len(list) != 0 {
		t.Errorf("listed: %v %v", list, err)
	}
}

// A pipe in the place of a file of the registry is refused, and not waited for.
func TestPipesInTheRegistry(t *testing.T) {
	for _, name := range []string{journalFile, instanceFile} {
		o := Options{StateDir: t.TempDir(), Session: "s1", Root: t.TempDir()}
		path := filepath.Join(o.StateDir, "sessions", "s1", "processes", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := NewManager(o)
		var failure *tool.Error
		if !errors.As(err, &failure) || failure.Path != path || failure.Hint != notOurs {
			t.Errorf("%s: %v", name, err)
		}
	}
	base := filepath.Join(t.TempDir(), newID())
	if err := errors.Join(os.WriteFile(base+outputSuffix, nil, 0o600), syscall.Mkfifo(base+endSuffix, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := openOutput(base); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("the end of an output: %v", err)
	}
}

func TestSessionIsBusy(t *testing.T) {
	m, _ := newTest(t)
	if _, err := NewManager(m.o); tool.KindOf(err) != tool.SessionBusy || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("a second manager: %v", err)
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Settle(now, m.o.StateDir, "s1"); tool.KindOf(err) != tool.SessionBusy {
		t.Errorf("settle: %v", err)
	}
	// One that is about to end is waited for.
	settled := make(chan error, 1)
	go func() {
		_, err := Settle(t.Context(), m.o.StateDir, "s1")
		settled <- err
	}()
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-settled; err != nil {
		t.Errorf("settle, when the manager has ended: %v", err)
	}
}

func TestRecordsOutliveTheManager(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{OperationID: "op", Command: "echo kept"})
	wait(t, m, p.ID)
	running := start(t, m, "sleep 100")
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, _ = newTest(t, func(o *Options) { o.StateDir, o.Root = m.o.StateDir, m.o.Root })
	if text := all(t, m, p.ID); text != "kept\n" {
		t.Errorf("output is %q", text)
	}
	again := startRequest(t, m, tool.StartRequest{OperationID: "op", Command: "echo kept"})
	if again.ID != p.ID || again.Status != tool.ProcessStopped {
		t.Errorf("the same operation gave %+v", again)
	}
	stopped, err := m.Get(t.Context(), running.ID)
	if err != nil || stopped.TerminalCause != string(tool.CauseRequestedStop) || stopped.Signal != "SIGTERM" || !stopped.OutputClosed {
		t.Errorf("closing ended it as %+v, %v", stopped, err)
	}
	gone, err := m.Cleanup(t.Context())
	if err != nil || len(gone) != 2 {
		t.Errorf("cleaned %v, %v", gone, err)
	}
	if _, err := m.Get(t.Context(), p.ID); tool.KindOf(err) != tool.ProcessNotFound {
		t.Errorf("after cleanup: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(m.registry.dir, "p-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("on disk: %v %v", left, err)
	}
}

func TestCloseEndsWaits(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "sleep 100")
	failed := make(chan error)
	go func() {
		_, err := m.Run(context.Background(), Command{Command: "sleep 100"})
		failed <- err
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for live(m) < 2 {
		<-tick.C // until the command runs
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-failed; err != nil {
		t.Errorf("the foreground command of a closed manager: %v", err)
	}
	if got, err := m.Get(t.Context(), p.ID); err != nil || got.Status != tool.ProcessStopped {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := m.Start(t.Context(), tool.StartRequest{Command: "true"}); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("start after close: %v", err)
	}
}

// What nobody can find any more, since it left its session, its parents and its
// environment, does not hold up the end.
func TestCloseLosesPipes(t *testing.T) {
	m, _ := newTest(t)
	line := "env -i setsid sh -c 'echo $$ > pid; exec sleep 300' & while ! [ -s pid ]; do sleep 0.01; done"
	p := start(t, m, line)
	wait(t, m, p.ID)
	if _, err := m.Run(t.Context(), Command{Command: "rm pid; " + line}); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := m.Get(t.Context(), p.ID); err != nil || !got.OutputClosed {
		t.Errorf("%+v %v", got, err)
	}
	procs, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range procs { // the test ends them, since nothing else does
		cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", i.pid))
		if err == nil && cwd == m.o.Root {
			if err := signalExactly(i, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	}
}

// Starts and the end of the Manager do not miss each other.
func TestCloseWhileStarting(t *testing.T) {
	for range 10 {
		m, _ := newTest(t)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					_, err := m.Start(context.Background(), tool.StartRequest{Argv: []string{"sleep", "300"}})
					if err != nil {
						if k := tool.KindOf(err); k != tool.EnvironmentLost && k != tool.Overloaded {
							t.Errorf("start: %v", err)
						}
						return
					}
				}
			})
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		all.Wait()
		if left := carriers(t, m); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	}
}

func TestCancelledWait(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "sleep 100")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Wait(ctx, p.ID); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("wait: %v", err)
	}
	at := int64(0)
	if _, err := m.Read(ctx, p.ID, tool.ReadOptions{OffsetBytes: &at, Wait: time.Hour}); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("read: %v", err)
	}
	if _, err := m.Start(ctx, tool.StartRequest{Command: "true"}); !errors.Is(err, context.Canceled) {
		t.Errorf("start: %v", err)
	}
}

func TestTooManyProcesses(t *testing.T) {
	m, _ := newTest(t)
	for range MaxLive {
		m.live[m.newProc(record{})] = struct{}{}
	}
	_, err := m.Start(t.Context(), tool.StartRequest{Command: "true"})
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != tool.Overloaded || !e.Retryable {
		t.Errorf("error is %v", err)
	}
	clear(m.live)
}

func TestKeptProcessesAreBounded(t *testing.T) {
	m, r := newTest(t)
	for i := range MaxKept + 20 {
		m.registry.journal.limit = 4096 // compacting all the while changes nothing
		rec := record{Process: tool.Process{ID: fmt.Sprintf("p-%020d", i), Status: tool.ProcessStopped, StartedAt: time.Unix(int64(i), 0), OutputClosed: true}}
		if err := m.registry.journal.put(rec); err != nil {
			t.Fatal(err)
		}
		p, err := m.ended(rec)
		if err != nil {
			t.Fatal(err)
		}
		m.listed[p.id] = p
	}
	m.limitKept()
	if n := len(m.listed); n != MaxKept {
		t.Errorf("%d are kept", n)
	}
	if e := r.of("p-00000000000000000000"); len(e) != 1 || e[0].Type != tool.EventCleanedUp {
		t.Errorf("the oldest: %v", e)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	m, _ = newTest(t, func(o *Options) { o.StateDir = m.o.StateDir })
	if n := len(m.listed); n != MaxKept {
		t.Errorf("%d are on disk", n)
	}
}

func TestStoredValues(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "exit 0")
	wait(t, m, p.ID)
	if pending, err := m.CompletionPending(t.Context(), p.ID); err != nil || !pending {
		t.Errorf("pending: %v %v", pending, err)
	}
	if _, err := m.CompletionDelivered(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	if got, err := m.SetCompletionMode(t.Context(), p.ID, "quiet"); err != nil || got.CompletionMode != "quiet" {
		t.Errorf("mode: %+v %v", got, err)
	}
	if pending, err := m.CompletionPending(t.Context(), p.ID); err != nil || pending {
		t.Errorf("still pending: %v %v", pending, err)
	}
}
