//go:build linux

package supervise

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// pipes is an attach process as a stream.
type pipes struct {
	io.WriteCloser
	io.Reader
	cmd  *exec.Cmd
	once sync.Once
	err  error
}

func (p *pipes) Close() error {
	p.once.Do(func() {
		p.err = p.WriteCloser.Close()
		// Wait closes the output; what still comes is nobody's.
		p.err = errors.Join(p.err, p.cmd.Wait())
	})
	return p.err
}

func startAttach(t *testing.T, o AttachOptions) *pipes {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, append([]string{"attach"}, o.Args()...)...)
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
	p := &pipes{WriteCloser: in, Reader: out, cmd: cmd}
	t.Cleanup(func() { p.Close() })
	return p
}

// Attach starts a worker that outlives it, and finds it again.
func TestAttach(t *testing.T) {
	o := AttachOptions{Worker: options(t), Mark: "mark-of-the-host"}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	root := t.TempDir()
	first := startAttach(t, o)
	c := connect(t, first, o.Mark, root)
	p := startProcess(t, c, "sleep 1000")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	pid := workerPID(t, o.Worker)
	c = connect(t, startAttach(t, o), o.Mark, root)
	if got := getProcess(t, c, p.ID); got.PID != p.PID || got.Status.Terminal() {
		t.Errorf("the process is %+v", got)
	}
	if again := workerPID(t, o.Worker); again != pid {
		t.Errorf("the worker is %d, before it was %d", again, pid)
	}
}

// A worker that was stopped, as one of its commands can do, goes on for the next
// host.
func TestAttachWakes(t *testing.T) {
	o := AttachOptions{Worker: options(t)}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	root := t.TempDir()
	first := startAttach(t, o)
	p := startProcess(t, connect(t, first, "", root), "sleep 1000")
	pid := workerPID(t, o.Worker)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	})
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, startAttach(t, o), "", root)
	if got := getProcess(t, c, p.ID); got.PID != p.PID || got.Status.Terminal() {
		t.Errorf("the process is %+v", got)
	}
}

// Killed, an attach takes nothing along.
func TestAttachKilled(t *testing.T) {
	o := AttachOptions{Worker: options(t)}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	root := t.TempDir()
	first := startAttach(t, o)
	p := startProcess(t, connect(t, first, "", root), "sleep 1000")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c := connect(t, startAttach(t, o), "", root)
	if got := getProcess(t, c, p.ID); got.PID != p.PID || got.Status.Terminal() {
		t.Errorf("the process is %+v", got)
	}
}

// Of many that come at once only one starts the worker.
func TestAttachTogether(t *testing.T) {
	o := AttachOptions{Worker: options(t)}
	t.Cleanup(func() { endWorker(t, o.Worker) })
	root := t.TempDir()
	streams := make([]*pipes, 6)
	for i := range streams {
		streams[i] = startAttach(t, o)
	}
	for _, s := range streams {
		connect(t, s, "", root)
	}
	log, err := os.ReadFile(filepath.Join(worker.SessionDir(o.Worker.State, "s1"), "worker.log"))
	if err != nil {
		t.Fatal(err)
	}
	if len(log) > 0 {
		t.Errorf("the worker's log: %s", log)
	}
}

// A pipe in the place of the log is refused, and not waited for.
func TestLogIsNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "worker.log")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, _, err := openLog(path); err == nil || !strings.Contains(err.Error(), path+": it is not a regular file") {
		t.Errorf("opened: %v, %v", f, err)
	}
}

// A worker that is killed while it starts, or before somebody has reached it, has
// done nothing: another one is started. One that cannot start fails.
func TestConnectStartsAgain(t *testing.T) {
	begin := func(ctx context.Context, o worker.Options) error { return Start(ctx, "", o, nil) }
	for name, dies := range map[string]func(context.Context, worker.Options) error{
		"while it starts": func(context.Context, worker.Options) error { return errors.New("signal: killed") },
		"before it is reached": func(ctx context.Context, o worker.Options) error {
			if err := begin(ctx, o); err != nil {
				return err
			}
			err := syscall.Kill(workerPID(t, o), syscall.SIGKILL)
			awaitEnd(t, o)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			t.Cleanup(func() { endWorker(t, o) })
			starts := 0
			conn, err := Connect(t.Context(), o, func(ctx context.Context) error {
				if starts++; starts == 1 {
					return dies(ctx, o)
				}
				return begin(ctx, o)
			})
			if err != nil || starts != 2 {
				t.Fatalf("after %d starts: %v", starts, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("always", func(t *testing.T) {
		broken, starts := errors.New("it is broken"), 0
		_, err := Connect(t.Context(), options(t), func(context.Context) error { starts++; return broken })
		if !errors.Is(err, broken) || starts != startTries {
			t.Errorf("after %d starts: %v", starts, err)
		}
	})
}

func TestAttachError(t *testing.T) {
	o := options(t)
	o.Listen = "/proc/none/w.sock"
	out := new(bytes.Buffer)
	err := Attach(t.Context(), AttachOptions{
		Worker: o, Mark: "m", Stdin: io.NopCloser(strings.NewReader("")), Stdout: nopCloser{out},
	})
	if err == nil || !strings.Contains(err.Error(), "socket directory") {
		t.Errorf("attach where no socket can be: %v, want the worker's own words", err)
	}
	if out.String() != "m\n" {
		t.Errorf("printed %q, want the mark first", out)
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Both ends can end first.
func TestRelay(t *testing.T) {
	path := options(t).Listen
	l, err := endpoint.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	accept := func() *net.UnixConn {
		c, err := l.AcceptUnix()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}

	t.Run("input first", func(t *testing.T) {
		conn, err := dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		far := accept()
		out := new(bytes.Buffer)
		done := make(chan error, 1)
		go func() { done <- relay(t.Context(), conn, io.NopCloser(strings.NewReader("question")), out) }()
		question, err := io.ReadAll(far) // ends although the connection does not
		if err != nil || string(question) != "question" {
			t.Errorf("the worker got %q, %v", question, err)
		}
		io.WriteString(far, "late answer")
		far.Close()
		if err := <-done; err != nil || out.String() != "late answer" {
			t.Errorf("relayed %q, %v", out, err)
		}
	})
	t.Run("worker first", func(t *testing.T) {
		conn, err := dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		far := accept()
		in, w := io.Pipe()
		defer w.Close()
		done := make(chan error, 1)
		go func() { done <- relay(t.Context(), conn, in, io.Discard) }()
		far.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		in.Close()
	})
	t.Run("cancelled", func(t *testing.T) {
		conn, err := dial(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		far := accept()
		defer far.Close()
		in, w := io.Pipe()
		defer w.Close()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- relay(ctx, conn, in, io.Discard) }()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		in.Close()
	})
}

func TestFlags(t *testing.T) {
	want := AttachOptions{Worker: options(t), Mark: "m", Control: "/c"}
	want.Worker.Writable = []string{"/a b", "/c=d"}
	want.Worker.MaxOutputBytes, want.Worker.Shell = 7, "/bin/sh"
	want.Worker.RemoveWhenIdle, want.Worker.ShareDir = true, "/share"
	want.Worker.ShutdownTimeout = 1500 * 1e6
	got, err := controlRequest{Args: want.Worker.Args()}.options()
	if err != nil {
		t.Fatal(err)
	}
	if a, b := strings.Join(got.Args(), " "), strings.Join(want.Worker.Args(), " "); a != b {
		t.Errorf("flags came back as\n%s, want\n%s", a, b)
	}
	for _, bad := range [][]string{
		{"--listen"}, {"--listen=/a", "extra"}, {}, {"--nonsense"}, {"--listen=/a", "--state=/b", "--session=../x"},
		{"--listen=/a", "--state=/b", "--session=x", "--writable-path=rel"},
		{"--listen=/a", "--state=/b", "--session=x", "--lifetime=-1"},
	} {
		if _, err := (controlRequest{Args: bad}).options(); err == nil {
			t.Errorf("%q is let through", bad)
		}
	}
}

func TestMainCommands(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"worker", "--help"}, ExitOK, "-listen"},
		{[]string{"attach", "--nonsense"}, ExitUsage, "nonsense"},
		{[]string{"init", "extra"}, ExitUsage, "extra"},
		{[]string{"worker", "--listen=/tmp/x"}, ExitFailure, "--state"},
		{[]string{"worker", "--detach"}, ExitFailure, "--listen"},
		{[]string{"worker", "--permission-mode=root"}, ExitUsage, "root"},
	} {
		cmd := exec.Command(exe, c.args...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.code || !strings.Contains(string(out), c.says) {
			t.Errorf("%q: %v, %s", c.args, err, out)
		}
	}
	if handled, _ := Main([]string{"serve"}); handled {
		t.Error("serve is none of ours")
	}
}

// What a started worker says before it fails is what its starter says.
func TestStartError(t *testing.T) {
	o := options(t)
	if err := os.Chmod(filepath.Dir(o.Listen), 0o755); err != nil {
		t.Fatal(err)
	}
	err := Start(t.Context(), "", o, nil)
	if err == nil || !strings.Contains(err.Error(), "others may enter it") {
		t.Errorf("start in an open directory: %v", err)
	}
	if err := Start(t.Context(), "/nonexistent/caisson", o, nil); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("start of a missing program: %v", err)
	}
}
