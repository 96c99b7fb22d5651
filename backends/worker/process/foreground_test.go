//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestRun(t *testing.T) {
	m, r := newTest(t)
	if err := os.MkdirAll(filepath.Join(m.o.Root, "sub/deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/deep", filepath.Join(m.o.Root, "link")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		command Command
		out     string
		err     string
		code    int
		signal  string
	}{
		{"both streams", Command{Command: "echo a; echo b >&2"}, "a\n", "b\n", 0, ""},
		{"code", Command{Command: "exit 42"}, "", "", 42, ""},
		{"signal", Command{Command: "kill -KILL $$"}, "", "", -1, "SIGKILL"},
		{"argv", Command{Argv: []string{"printf", "%s|", "a b", "$HOME"}}, "a b|$HOME|", "", 0, ""},
		{"directory", Command{Command: "pwd; echo $PWD", CWD: "sub/deep"}, m.o.Root + "/sub/deep\n" + m.o.Root + "/sub/deep\n", "", 0, ""},
		{"link", Command{Argv: []string{"pwd"}, CWD: filepath.Join(m.o.Root, "link")}, m.o.Root + "/sub/deep\n", "", 0, ""},
		{"environment", Command{Command: "echo $A $HOME", Env: map[string]string{"A": "1", "HOME": "/h"}}, "1 /h\n", "", 0, ""},
		{"session", Command{Command: `read -r pid _ _ _ group session _ < /proc/$$/stat; [ $pid = $group ] && [ $pid = $session ] && echo leader`}, "leader\n", "", 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := m.Run(t.Context(), tt.command)
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Stdout) != tt.out || string(got.Stderr) != tt.err || got.ExitCode != tt.code || got.Signal != tt.signal {
				t.Errorf("%q %q %d %s", got.Stdout, got.Stderr, got.ExitCode, got.Signal)
			}
			if got.StdoutBytes != int64(len(tt.out)) || got.StdoutTruncated || got.TimedOut || got.Duration <= 0 || got.Mode != tool.Unconfined {
				t.Errorf("%+v", got)
			}
		})
	}
	if list, err := m.List(t.Context()); err != nil || len(list) != 0 || len(r.events) != 0 {
		t.Errorf("foreground commands are listed: %v %v %v", list, err, r.events)
	}
}

func TestRunBoundsOutput(t *testing.T) {
	m, _ := newTest(t)
	r, err := m.Run(t.Context(), Command{Command: "head -c 5000000 /dev/zero; echo end; echo problem >&2", MaxOutputBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Stdout)+len(r.Stderr) > 1000 || !r.StdoutTruncated || r.StderrTruncated || r.StdoutBytes != 5_000_004 {
		t.Errorf("%d of %d and %d of %d bytes, %v %v", len(r.Stdout), r.StdoutBytes, len(r.Stderr), r.StderrBytes, r.StdoutTruncated, r.StderrTruncated)
	}
	if string(r.Stderr) != "problem\n" || !bytes.HasSuffix(r.Stdout, []byte("\x00end\n")) || !bytes.Contains(r.Stdout, []byte("bytes left out]")) {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
}

func TestRunDoesNotWaitForGrandchildren(t *testing.T) {
	m, _ := newTest(t)
	r, err := m.Run(t.Context(), Command{Command: "mkfifo go; (read x < go; echo late && touch proof) & echo now"})
	if err != nil || string(r.Stdout) != "now\n" {
		t.Fatalf("%q %v", r.Stdout, err)
	}
	// It is left alone: it still runs, and may write to its pipe.
	if err := os.WriteFile(filepath.Join(m.o.Root, "go"), []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	awaitFile(t, filepath.Join(m.o.Root, "proof"))
}

func TestRunAdopts(t *testing.T) {
	m, r := newTest(t)
	outOfTime(t, m, func(p *proc) bool { return p.captures[0].size() > 0 && p.captures[1].size() == 4 })
	got, err := m.Run(t.Context(), Command{
		Command: "mkfifo go; echo $$; echo err >&2; read x < go; echo more; exit 7", Timeout: time.Hour,
		Actor: tool.Actor{ID: "helper", Kind: tool.ActorSubagent}, Label: "slow",
	})
	if err == nil && !got.TimedOut {
		t.Fatalf("not adopted: %+v", got)
	}
	if err != nil || got.ExitCode != -1 || got.PromotedProcessID == "" || string(got.Stderr) != "err\n" {
		t.Fatalf("%+v %v", got, err)
	}
	id := got.PromotedProcessID
	p, err := m.Get(t.Context(), id)
	if err != nil || fmt.Sprintln(p.PID) != string(got.Stdout) || p.Status != tool.ProcessRunning || p.OwnerID != "helper" || p.Label != "slow" {
		t.Fatalf("%+v %v, stdout %q", p, err, got.Stdout)
	}
	checkIdentity(t, m, p)
	if e := r.of(id); len(e) != 1 || e[0].Type != tool.EventStarted {
		t.Errorf("events: %+v", e)
	}
	if _, err := m.Write(t.Context(), id, []byte("x")); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("its input: %v", err)
	}
	if err := os.WriteFile(filepath.Join(m.o.Root, "go"), []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	if p := wait(t, m, id); p.ExitCode != 7 || p.TerminalCause != string(tool.CauseNaturalExit) {
		t.Errorf("ended as %+v", p)
	}
	if text := all(t, m, id); strings.Replace(text, "err\n", "", 1) != string(got.Stdout)+"more\n" {
		t.Errorf("output is %q", text)
	}
}

// checkIdentity fails unless what is on disk proves whose the process's pid is, to a
// worker that finds it there.
func checkIdentity(t *testing.T, m *Manager, p tool.Process) {
	t.Helper()
	f, err := os.Open(filepath.Join(m.registry.dir, journalFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, _, err := readJournal(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if rec.ID == p.ID && rec.Identity != whoIs(p.PID) {
			t.Errorf("the record does not prove that pid %d is the process: %+v", p.PID, rec.Identity)
		}
	}
	if !slices.ContainsFunc(records, func(rec record) bool { return rec.ID == p.ID }) {
		t.Errorf("there is no record of %s", p.ID)
	}
}

// What a command has written is in its result although nobody came to read it for
// longer than somebody else may hold its pipe.
func TestLateReader(t *testing.T) {
	m, _ := newTest(t)
	come := make(chan struct{})
	m.buffers.New = func() any { <-come; return new([copySize]byte) }
	time.AfterFunc(3*DrainGrace, func() { close(come) })
	// It is not as young any more as those that its caller attends.
	r, err := m.Run(t.Context(), Command{Command: fmt.Sprintf("sleep %v; echo out; echo err >&2", (3 * attention).Seconds())})
	if err != nil || string(r.Stdout) != "out\n" || string(r.Stderr) != "err\n" {
		t.Errorf("%q %q %v", r.Stdout, r.Stderr, err)
	}
}

// Who goes on writing into the pipe of a command that has ended holds nobody up,
// however fast.
func TestEndlessRest(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("there is always more"); err != nil {
		t.Fatal(err)
	}
	out := newCapture(1)
	p := &proc{drained: make(chan struct{}), captures: []*capture{out}, outputs: []*os.File{r}}
	given := make(chan bool, 1)
	go func() { given <- p.awaitRest(time.Millisecond) }()
	read := make([]byte, copySize)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; {
		select {
		case ended := <-given:
			if ended || out.size() < maxPiece {
				t.Errorf("given up after %d bytes, at the end: %v", out.size(), ended)
			}
			return
		case <-tick.C:
			_, _ = out.Write(read) // takes everything
		}
		if time.Now().After(deadline) {
			t.Fatalf("still waiting after %d bytes", out.size())
		}
	}
}

// What a command wrote before it was adopted is all there, beyond what its
// result could hold and what waited in memory.
func TestAdoptedOutputIsWhole(t *testing.T) {
	m, _ := newTest(t)
	if r, err := m.Run(t.Context(), Command{Command: "mkfifo go"}); err != nil || r.ExitCode != 0 {
		t.Fatal(r, err)
	}
	var want strings.Builder
	for i := range 200_000 {
		fmt.Fprintln(&want, i+1)
	}
	outOfTime(t, m, func(p *proc) bool { return p.taken() == int64(want.Len()) })
	got, err := m.Run(t.Context(), Command{
		Command: "seq 1 200000; read x < go; echo end", Timeout: time.Hour, MaxOutputBytes: 100,
	})
	if err != nil || !got.TimedOut || !got.StdoutTruncated {
		t.Fatalf("%+v %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(m.o.Root, "go"), []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	want.WriteString("end\n")
	if text := all(t, m, got.PromotedProcessID); text != want.String() {
		t.Errorf("%d bytes of %d", len(text), want.Len())
	}
	if p := wait(t, m, got.PromotedProcessID); p.ExitCode != 0 || p.TotalBytes != int64(want.Len()) {
		t.Errorf("%+v", p)
	}
}

func TestForegroundOutputLeavesNoFile(t *testing.T) {
	m, _ := newTest(t)
	r, err := m.Run(t.Context(), Command{Command: "head -c 10000000 /dev/zero", Timeout: time.Minute})
	if err != nil || r.StdoutBytes != 10_000_000 {
		t.Fatal(r.StdoutBytes, err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob(filepath.Join(m.registry.dir, "p-*")); err != nil || len(left) != 0 {
		t.Errorf("on disk: %v %v", left, err)
	}
}

// A cancelled command dies with its group, with who left the group and with
// who left its parents too.
func TestCancelKillsAll(t *testing.T) {
	for _, tt := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		kind tool.Kind
	}{
		{"cancel", context.WithCancel, tool.Cancelled},
		{"deadline", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 300*time.Millisecond)
		}, tool.Timeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := newTest(t)
			ctx, cancel := tt.ctx(t.Context())
			defer cancel()
			if tt.kind == tool.Cancelled {
				go func() {
					awaitFile(t, filepath.Join(m.o.Root, "ready"))
					cancel()
				}()
			}
			r, err := m.Run(ctx, Command{Command: `trap '' TERM
				sleep 300 & setsid sleep 300 & (setsid sh -c 'sleep 300 & sleep 300' &)
				echo partial; sleep 0.1; touch ready; sleep 300; touch PROOF`})
			if tool.KindOf(err) != tt.kind {
				t.Fatalf("error is %v", err)
			}
			if tt.kind == tool.Cancelled && string(r.Stdout) != "partial\n" {
				t.Errorf("output is %q", r.Stdout)
			}
			if left := carriers(t, m); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if _, err := os.Stat(filepath.Join(m.o.Root, "PROOF")); err == nil {
				t.Error("it went on")
			}
			if n := live(m); n != 0 {
				t.Errorf("%d live", n)
			}
		})
	}
}

// carriers are the living processes that m's commands have started.
func carriers(t testing.TB, m *Manager) []procInfo {
	t.Helper()
	procs, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	var left []procInfo
	for _, p := range procs {
		if !p.zombie && marked(p.pid, m.instance+"/") {
			left = append(left, p)
		}
	}
	return left
}

// outOfTime has the time of m's next foreground command end when that has come so far.
func outOfTime(t *testing.T, m *Manager, far func(*proc) bool) {
	t.Helper()
	m.late = func(time.Duration) (<-chan time.Time, func()) {
		m.late = after
		m.mu.Lock()
		running := slices.Collect(maps.Keys(m.live))
		m.mu.Unlock()
		over := make(chan time.Time)
		go func() {
			defer close(over)
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for deadline := time.Now().Add(patience); !slices.ContainsFunc(running, far); <-tick.C {
				if time.Now().After(deadline) {
					t.Error("the command has not come so far")
					return
				}
			}
		}()
		return over, func() {}
	}
}

// awaitFile returns when there is a file at path.
func awaitFile(t testing.TB, path string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%s never came", path)
			return
		}
	}
}

func TestShells(t *testing.T) {
	m, _ := newTest(t)
	m.shells = []string{"/nonexistent/bash", "/bin/sh"}
	if r, err := m.Run(t.Context(), Command{Command: "echo $0"}); err != nil || string(r.Stdout) != "sh\n" {
		t.Errorf("fallback: %q %v", r.Stdout, err)
	}
	m.shells = []string{"/nonexistent/bash", "/nonexistent/sh"}
	_, err := m.Run(t.Context(), Command{Command: "true"})
	if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), "/nonexistent/bash and no /nonexistent/sh") {
		t.Errorf("none: %v", err)
	}
	if r, err := m.Run(t.Context(), Command{Argv: []string{"true"}}); err != nil || r.ExitCode != 0 {
		t.Errorf("a program without a shell: %+v %v", r, err)
	}
}
