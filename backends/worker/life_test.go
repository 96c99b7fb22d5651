//go:build linux

package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

const counter = `i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done`

// Processes outlive the connection that started them, and output goes on at the
// byte.
func TestReconnect(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	p := startProcess(t, c, "count", counter)
	read, text := output(t, c, p.ID, 0)
	if err := c.Close(); err != nil {
		t.Error(err)
	}

	c = connect(t, o, root)
	again := call[tool.Process](t, c, wire.MethodProcessGet, wire.ProcessRequest{ID: p.ID})
	if again.PID != p.PID || again.Status != tool.ProcessRunning || again.OperationID != "count" {
		t.Errorf("after the reconnect the process is %+v", again)
	}
	for offset := read.EndOffset; strings.Count(text, "\n") < 100; {
		var more string
		read, more = output(t, c, p.ID, offset)
		if read.StartOffset != offset {
			t.Fatalf("output continues at %d instead of %d", read.StartOffset, offset)
		}
		text, offset = text+more, read.EndOffset
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines[:len(lines)-1] {
		if line != strconv.Itoa(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	call[tool.Process](t, c, wire.MethodProcessStop, wire.ProcessRequest{ID: p.ID})
}

// A worker whose socket was removed, with the directory that it stood in, can be
// reached again, and its end leaves nothing there.
func TestSocketRemoved(t *testing.T) {
	o := options(t)
	o.ShutdownTimeout = 4 * time.Second
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	p := startProcess(t, c, "sleep", "sleep 1000")
	if err := errors.Join(c.Close(), os.RemoveAll(filepath.Dir(o.Listen))); err != nil {
		t.Fatal(err)
	}
	// Another worker is started, waits for this one in vain, and by then it listens again.
	conn, err := supervise.Connect(t.Context(), o, func(ctx context.Context) error {
		return supervise.Start(ctx, "", o, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	c = clientOn(t, conn, nil)
	if _, err := c.Initialize(t.Context(), binding(root)); err != nil {
		t.Fatal(err)
	}
	again := call[tool.Process](t, c, wire.MethodProcessGet, wire.ProcessRequest{ID: p.ID})
	if again.PID != p.PID || again.Status != tool.ProcessRunning {
		t.Errorf("the process is %+v", again)
	}
	call[struct{}](t, c, wire.MethodShutdown, wire.Shutdown{})
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	awaitEnd(t, o)
	if _, err := os.Lstat(o.Listen); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// With nobody connected the worker ends after its lifetime, and its processes
// with it.
func TestIdle(t *testing.T) {
	t.Parallel() // it waits more than it works
	o := options(t)
	o.Lifetime, o.RemoveWhenIdle = shortLife, true
	start(t, o)
	root := filepath.Join(t.TempDir(), "work")
	c := connect(t, o, root)
	p := startProcess(t, c, "sleep", "sleep 1000")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	awaitEnd(t, o)
	wantDead(t, p.PID)
	for _, gone := range []string{root, o.Listen} {
		if _, err := os.Lstat(gone); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", gone, err)
		}
	}
}

// A connection that says nothing does not keep the worker alive.
func TestIdleDespiteSilentConnection(t *testing.T) {
	t.Parallel() // it waits more than it works
	o := options(t)
	o.Lifetime = shortLife
	start(t, o)
	conn := dial(t, o.Listen)
	defer conn.Close()
	awaitEnd(t, o)
}

func TestShutdown(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprintf("remove %v", remove), func(t *testing.T) {
			o := options(t)
			start(t, o)
			root := filepath.Join(t.TempDir(), "work")
			c := connect(t, o, root)
			if err := os.WriteFile(filepath.Join(root, "file"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			p := startProcess(t, c, "sleep", "sleep 1000")
			call[struct{}](t, c, wire.MethodShutdown, wire.Shutdown{Remove: remove})
			wantDead(t, p.PID)
			if _, err := os.Stat(root); os.IsNotExist(err) != remove {
				t.Errorf("the workspace: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			awaitEnd(t, o)
		})
	}
}

// A worker that is told to end takes along what its commands left behind.
func TestTerminate(t *testing.T) {
	o := options(t)
	start(t, o)
	c := connect(t, o, t.TempDir())
	p := startProcess(t, c, "orphan", `setsid sleep 1001 & echo $!; wait`)
	_, text := output(t, c, p.ID, 0)
	orphan, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(holder(t, o), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, o)
	for _, pid := range []int{p.PID, orphan} {
		wantDead(t, pid)
	}
}

// What a command leaves behind is reaped by its worker.
func TestNoZombies(t *testing.T) {
	o := options(t)
	start(t, o)
	c := connect(t, o, t.TempDir())
	p := startProcess(t, c, "zombies", `for i in 1 2 3 4 5; do (sh -c 'sleep 0.05 & sleep 0.05 &' &) ; done; echo made; sleep 1000`)
	output(t, c, p.ID, 0)
	worker := holder(t, o)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(patience)
	for zombies := -1; zombies != 0; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%d zombies are left", zombies)
		}
		zombies = 0
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, stat := range stats {
			b, err := os.ReadFile(stat)
			if err != nil {
				continue // it has ended
			}
			fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
			if fields[1] != strconv.Itoa(worker) {
				continue
			}
			if left++; fields[0] == "Z" {
				zombies++
			}
		}
		if left > 1 { // the sleeping shell alone stays
			zombies = max(zombies, left-1)
		}
	}
}

// A second worker of a session takes over only when the first has ended.
func TestTakeover(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	first := holder(t, o)
	p := startProcess(t, c, "stubborn", `trap '' TERM; echo ready; while :; do sleep 1; done`)
	output(t, c, p.ID, 0)
	done := make(chan error, 1)
	go func() {
		_, err := c.Call(t.Context(), wire.MethodShutdown, wire.Shutdown{}, nil)
		done <- err
	}()
	// The first one stops listening at once and takes two seconds to end.
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		conn, err := net.Dial("unix", o.Listen)
		if err != nil {
			break
		}
		conn.Close()
	}
	start(t, o)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if second := holder(t, o); second == first || second == 0 {
		t.Errorf("the worker is %d, before it was %d", second, first)
	}
	c = connect(t, o, root)
	got := call[tool.Process](t, c, wire.MethodProcessGet, wire.ProcessRequest{ID: p.ID})
	if got.Status == tool.ProcessRunning {
		t.Errorf("the process is %+v", got)
	}
}

// Killed, a worker leaves processes that the next one ends and reports lost.
func TestKilledWorker(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	p := startProcess(t, c, "sleep", "sleep 1000")
	if err := syscall.Kill(holder(t, o), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, o)
	if _, err := c.Call(t.Context(), wire.MethodProcessList, nil, nil); err == nil {
		t.Error("a dead worker answers")
	}
	start(t, o)
	c = connect(t, o, root)
	got := call[tool.Process](t, c, wire.MethodProcessGet, wire.ProcessRequest{ID: p.ID})
	if got.Status != tool.ProcessFailed || got.TerminalCause != tool.CauseLost {
		t.Errorf("the process is %+v", got)
	}
	wantDead(t, p.PID)
}

// A command cannot speak to its own worker, not even with the token.
func TestCommandAtOwnSocket(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{exe, "attach"}, o.Args()...)
	frame := fmt.Sprintf(`{"id":"1","method":"initialize","token":%q,"data":{"version":4,"root":%q,"session":"s1","identity":"caisson-1"},"more":%q}`,
		token, root, strings.Repeat("x", 1<<15)) // less than is read of whoever may be a command
	if err := os.WriteFile(filepath.Join(root, "frame"), []byte(frame+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, c, "attack", strings.Join(args, " ")+" <frame; echo ended")
	var text string
	for offset := int64(0); !strings.Contains(text, "ended"); {
		read, more := output(t, c, p.ID, offset)
		text, offset = text+more, read.EndOffset
	}
	if text != `{"id":"1","error":"the worker refused the connection"}`+"\nended\n" {
		t.Errorf("the command was answered: %q", text)
	}
	// The same from here is answered.
	cmd := exec.Command(exe, args[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, frame)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, `"version":4`) {
		t.Errorf("attach from beside the worker: %q, %v", line, err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// On stdio the end of input ends everything, within the budget.
func TestStdio(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Nothing takes up the budget, but on a machine that is very busy.
	o := worker.Options{Mode: tool.Unconfined, Ceiling: tool.Unconfined, ShutdownTimeout: 2 * patience}
	cmd := exec.Command(exe, append([]string{"worker"}, o.Args()...)...)
	temp := t.TempDir()
	cmd.Env = append(os.Environ(), "TMPDIR="+temp)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	frames := bufio.NewReader(out)
	say := func(format string, args ...any) string {
		t.Helper()
		fmt.Fprintf(in, format+"\n", args...)
		line, err := frames.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
	root := filepath.Join(t.TempDir(), "work")
	if got := say(`{"id":"1","method":"initialize","data":{"version":4,"root":%q,"session":"s1","remove_workspace_on_exit":true}}`, root); !strings.Contains(got, `"capabilities"`) {
		t.Fatalf("initialize: %s", got)
	}
	fmt.Fprintf(in, `{"id":"2","method":"process/start","data":{"operation_id":"x","command":"sleep 1000","actor":"s1"}}`+"\n")
	pid := 0
	for pid == 0 {
		line, err := frames.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, `{"id":"2"`) {
			_, after, _ := strings.Cut(line, `"pid":`)
			if _, err := fmt.Sscanf(after, "%d", &pid); err != nil {
				t.Fatalf("start: %s", line)
			}
		}
	}
	began := time.Now()
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := frames.ReadString('\n'); err != nil {
			break
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker: %v", err)
	}
	if took := time.Since(began); took > patience {
		t.Errorf("the end took %v", took)
	}
	wantDead(t, pid)
	if _, err := os.Stat(root); !os.IsNotExist(err) {
		t.Errorf("the workspace is still there: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary directory: %v, %v", left, err)
	}
}

// A worker comes over to a socket of its host.
func TestHostSocket(t *testing.T) {
	o := options(t)
	o.ShareDir = filepath.Dir(o.Listen)
	start(t, o)
	root := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(o.ShareDir, "h.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := client(t, o.Listen)
	in := binding(root)
	in.Socket = &wire.SocketOffer{Path: "h.sock", Nonce: "n0nce"}
	got, err := c.Initialize(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !got.SocketConnected || !slices.Contains(got.Capabilities, wire.CapSocket) {
		t.Fatalf("it did not come: %+v", got)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	if err := wire.CheckSocket(t.Context(), conn, "n0nce"); err != nil {
		t.Fatal(err)
	}
	events := make(chan tool.ProcessEvent, 16)
	over := clientOn(t, conn, func(e tool.ProcessEvent) { events <- e })
	in.Socket = nil
	if _, err := over.Initialize(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	p := startProcess(t, over, "true", "true")
	select {
	case e := <-events:
		if e.Type != tool.EventStarted || e.Process.ID != p.ID {
			t.Errorf("the first event is %+v", e)
		}
	case <-time.After(patience):
		t.Error("no event came over the socket")
	}
}

const impostorName = "impostor"

// impostor listens at path as a host does, sends a challenge and prints the answer.
func impostor(path string) error {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("listening")
	conn, err := l.AcceptUnix()
	if err != nil {
		return err
	}
	defer conn.Close()
	_, sent := fmt.Fprintln(conn, strings.Repeat("0", 64)) // may be hung up on already
	answer, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, syscall.ECONNRESET) {
		return err
	}
	fmt.Printf("answered %q, sent: %v\nended\n", answer, sent == nil)
	return nil
}

// A command that listens in the host's place gets no answer to its challenge, which
// might be the host's.
func TestCommandAsHost(t *testing.T) {
	o := options(t)
	o.ShareDir = filepath.Dir(o.Listen)
	start(t, o)
	root := t.TempDir()
	c := connect(t, o, root)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, c, "impostor", strings.Join([]string{exe, impostorName, filepath.Join(o.ShareDir, "h.sock")}, " "))
	printed(t, c, p.ID, "listening\n")
	other := client(t, o.Listen)
	in := binding(root)
	in.Socket = &wire.SocketOffer{Path: "h.sock", Nonce: "n0nce"}
	if _, err := other.Initialize(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if text := printed(t, c, p.ID, "ended\n"); !strings.Contains(text, `answered ""`) {
		t.Errorf("the command was answered: %s", text)
	}
}

// printed is what a process has printed once that has the word.
func printed(t *testing.T, c *wire.Client, id, word string) string {
	t.Helper()
	var text string
	for offset := int64(0); !strings.Contains(text, word); {
		read, more := output(t, c, id, offset)
		if text, offset = text+more, read.EndOffset; more == "" && read.Process.Status.Terminal() {
			t.Fatalf("it ended without %q: %q", word, text)
		}
	}
	return text
}

// Where nobody listens for it, or it was told of no directory, the worker serves on.
func TestNoHostSocket(t *testing.T) {
	for name, share := range map[string]bool{"nobody listens": true, "no directory": false} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			if share {
				o.ShareDir = filepath.Dir(o.Listen)
			}
			start(t, o)
			c := client(t, o.Listen)
			in := binding(t.TempDir())
			in.Socket = &wire.SocketOffer{Path: "h.sock", Nonce: "n0nce"}
			got, err := c.Initialize(t.Context(), in)
			if err != nil || got.SocketConnected || slices.Contains(got.Capabilities, wire.CapSocket) != share {
				t.Fatalf("%+v, %v", got, err)
			}
			startProcess(t, c, "true", "true")
		})
	}
}
