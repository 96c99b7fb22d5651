//go:build linux

package worker_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// The test binary is the worker too, and a command that plays its host.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == impostorName {
		if err := impostor(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if handled, code := supervise.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	// Under the race detector every worker and starter would sleep for a second
	// at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const token = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// patience is how long tests wait for what should come at once.
const patience = 30 * time.Second

// shortLife is a lifetime that is waited for, beside other tests: longer than a start
// takes, on a busy machine too.
const shortLife = 10 * time.Second

// options are those of a worker on a socket, with directories of the test's own.
func options(t *testing.T) worker.Options {
	t.Helper()
	run, err := os.MkdirTemp("/tmp", "wk") //nolint:usetesting // a test's own directories have long paths
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(run); err != nil {
			t.Error(err)
		}
	})
	return worker.Options{
		Listen:   filepath.Join(run, "w.sock"),
		State:    t.TempDir(),
		Session:  "s1",
		Mode:     tool.Unconfined,
		Ceiling:  tool.Unconfined,
		Lifetime: time.Minute,
	}
}

// start starts a worker that is ended, if it has not by itself, with the test.
func start(t *testing.T, o worker.Options) {
	t.Helper()
	if err := supervise.Start(t.Context(), "", o, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if pid := holder(t, o); pid != 0 {
			// It may end by itself at this very moment.
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				t.Error(err)
			}
		}
		awaitEnd(t, o)
	})
}

func lockPath(o worker.Options) string {
	return filepath.Join(worker.SessionDir(o.State, o.Session), "worker.lock")
}

// holder is the pid of the worker, 0 when none runs.
func holder(t *testing.T, o worker.Options) int {
	t.Helper()
	held, err := endpoint.Held(lockPath(o))
	if err != nil {
		t.Fatal(err)
	}
	if !held {
		return 0
	}
	b, err := os.ReadFile(lockPath(o))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// awaitEnd returns when the worker has ended.
func awaitEnd(t *testing.T, o worker.Options) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	lock, err := endpoint.Acquire(ctx, lockPath(o))
	if err != nil {
		t.Fatalf("the worker has not ended: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Error(err)
	}
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// client connects to a worker and does not initialize.
func client(t *testing.T, path string) *wire.Client {
	t.Helper()
	return clientOn(t, dial(t, path), nil)
}

func clientOn(t *testing.T, conn net.Conn, events func(tool.ProcessEvent)) *wire.Client {
	t.Helper()
	c := wire.NewClient(conn, wire.ClientOptions{Token: token, OnEvent: events})
	t.Cleanup(func() { c.Close() })
	return c
}

func binding(root string) wire.Initialize {
	return wire.Initialize{Root: root, Session: "s1", Identity: "caisson-1", Environment: map[string]string{"GIVEN": "given"}}
}

// connect connects and initializes.
func connect(t *testing.T, o worker.Options, root string) *wire.Client {
	t.Helper()
	c := client(t, o.Listen)
	if _, err := c.Initialize(t.Context(), binding(root)); err != nil {
		t.Fatal(err)
	}
	return c
}

// call calls a method and decodes the reply.
func call[R any](t *testing.T, c *wire.Client, method string, data any) R {
	t.Helper()
	reply, err := c.Call(t.Context(), method, data, nil)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	var r R
	if err := reply.Decode(&r); err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return r
}

func startProcess(t *testing.T, c *wire.Client, id, line string) tool.Process {
	t.Helper()
	return call[tool.Process](t, c, wire.MethodProcessStart, tool.StartRequest{OperationID: id, Command: line, Actor: "s1"})
}

// output reads what a process has written from an offset on, waiting for some.
func output(t *testing.T, c *wire.Client, id string, offset int64) (wire.ProcessRead, string) {
	t.Helper()
	reply, err := c.Call(t.Context(), wire.MethodProcessRead, wire.ProcessRequest{
		ID:      id,
		Options: &wire.ReadOptions{OffsetBytes: &offset, Wait: int64(10 * time.Second)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var read wire.ProcessRead
	if err := reply.Decode(&read); err != nil {
		t.Fatal(err)
	}
	return read, string(reply.Body)
}

// wantKind checks an error's kind and that its message holds a word.
func wantKind(t *testing.T, what string, err error, kind tool.Kind, word string) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind || !strings.Contains(err.Error(), word) {
		t.Errorf("%s: %v (%s), want %s with %q", what, err, tool.KindOf(err), kind, word)
	}
}

// wantWord checks that an error says something.
func wantWord(t *testing.T, what string, err error, word string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), word) {
		t.Errorf("%s: %v, want %q", what, err, word)
	}
}

// wantDead checks that nothing of a process runs any more. A zombie may wait
// for whoever inherited it.
func wantDead(t *testing.T, pid int) {
	t.Helper()
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return
	}
	if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "Z") {
		t.Errorf("process %d is still there: %s", pid, stat)
	}
}
