//go:build linux

package supervise

import (
	"context"
	"errors"
	"fmt"
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
)

// The test binary is the program that is supervised too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "first" {
		becomeFirst(os.Args[2:])
	}
	if handled, code := Main(os.Args[1:]); handled {
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
const patience = time.Minute

// shortLife is a lifetime that is waited for, beside other tests: longer than a start
// takes, on a busy machine too.
const shortLife = 10 * time.Second

// options are those of a worker, with directories of the test's own.
func options(t *testing.T) worker.Options {
	t.Helper()
	run, err := os.MkdirTemp("/tmp", "sv") //nolint:usetesting // a test's own directories have long paths
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

// endWorker ends a worker that was started detached, and waits for it.
func endWorker(t *testing.T, o worker.Options) {
	t.Helper()
	if pid := workerPID(t, o); pid != 0 {
		// It may end by itself at this very moment.
		if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
	}
	awaitEnd(t, o)
}

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

func lockPath(o worker.Options) string {
	return filepath.Join(worker.SessionDir(o.State, o.Session), "worker.lock")
}

// workerPID is the pid of the worker, 0 when none runs.
func workerPID(t *testing.T, o worker.Options) int {
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

// connect makes an initialized client of a stream.
func connect(t *testing.T, stream rwc, mark, root string) *wire.Client {
	t.Helper()
	c := wire.NewClient(stream, wire.ClientOptions{Token: token, Mark: mark})
	t.Cleanup(func() { c.Close() })
	if _, err := c.Initialize(t.Context(), wire.Initialize{Root: root, Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	return c
}

type rwc interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Close() error
}

func startProcess(t *testing.T, c *wire.Client, line string) tool.Process {
	t.Helper()
	reply, err := c.Call(t.Context(), wire.MethodProcessStart,
		tool.StartRequest{OperationID: line, Command: line, Actor: "s1"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p tool.Process
	if err := reply.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}

func getProcess(t *testing.T, c *wire.Client, id string) tool.Process {
	t.Helper()
	reply, err := c.Call(t.Context(), wire.MethodProcessGet, wire.ProcessRequest{ID: id}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var p tool.Process
	if err := reply.Decode(&p); err != nil {
		t.Fatal(err)
	}
	return p
}
