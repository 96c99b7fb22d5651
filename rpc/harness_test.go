package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
)

// patience is how long a test waits for what must come, on the busiest machine.
const patience = time.Minute

// harness is a server with real sessions over a double, and its end.
type harness struct {
	*double
	server *server
	in     *io.PipeWriter
	out    *io.PipeReader
	stop   context.CancelFunc
	done   chan struct{}
	code   int
	err    error
}

// serve starts a server on pipes. Change may alter it first; nil is allowed.
func serve(t testing.TB, change func(*server)) *harness {
	t.Helper()
	d := newDouble()
	inReader, in := io.Pipe()
	out, outWriter := io.Pipe()
	h := &harness{double: d, in: in, out: out, done: make(chan struct{})}
	h.server = newServer(Options{
		In: inReader, Out: outWriter, Version: "1.2.3-test",
		Log:  slog.New(slog.NewTextHandler(testLog{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Open: openDouble(t.TempDir(), d),
	})
	if change != nil {
		change(h.server)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() {
		defer close(h.done)
		h.code, h.err = h.server.serve(ctx)
	}()
	t.Cleanup(func() {
		h.release()
		in.Close()
		out.Close()
		stop()
		<-h.done
	})
	return h
}

// openDouble opens real services over a double.
func openDouble(dir string, d *double) func(context.Context, OpenOptions) (Services, error) {
	return func(_ context.Context, o OpenOptions) (Services, error) {
		if o.StateDir == "" {
			o.StateDir = filepath.Join(dir, "state")
		}
		store, err := artifacts.Open(filepath.Join(dir, "artifacts"), artifacts.Options{})
		if err != nil {
			return Services{}, err
		}
		if o.ConfigPath == "" {
			o.ConfigPath = filepath.Join(dir, "config.json")
		}
		registry := backends.NewRegistry(d)
		manager, err := session.New(session.Options{
			StateDir: o.StateDir, RuntimeDir: filepath.Join(dir, "run"),
			Config:   config.File(o.ConfigPath),
			Registry: registry, Artifacts: store, Sink: o.Sink, Log: o.Log,
		})
		if err != nil {
			return Services{}, errors.Join(err, store.Close())
		}
		return Services{Sessions: manager, Artifacts: store, Backends: registry.Kinds(), ProcessTTY: true, Close: registry.Close}, nil
	}
}

// release lets blocked calls go on.
func (h *harness) release() {
	h.double.mu.Lock()
	defer h.double.mu.Unlock()
	select {
	case <-h.blocked:
	default:
		close(h.blocked)
	}
}

// env is the environment of the one session that there is.
func (h *harness) env() *doubleEnv {
	h.double.mu.Lock()
	defer h.double.mu.Unlock()
	for _, e := range h.envs {
		return e
	}
	panic("no session is open")
}

// wait waits for the server's end and returns its exit code.
func (h *harness) wait(t testing.TB) int {
	t.Helper()
	select {
	case <-h.done:
		return h.code
	case <-time.After(shutdownBudget + patience):
		t.Fatal("the server does not end")
		return 0
	}
}

// connect makes an initialized client.
func (h *harness) connect(t testing.TB, capabilities protocol.ClientCapabilities, o client.Options) *client.Client {
	t.Helper()
	c := client.New(h.out, h.in, o)
	t.Cleanup(func() {
		h.release()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := c.Initialize(t.Context(), protocol.InitializeParams{Capabilities: capabilities}); err != nil {
		t.Fatal(err)
	}
	return c
}

// open opens the session s1 on a folder.
func open(t testing.TB, c *client.Client) protocol.Session {
	t.Helper()
	uri := "file://" + filepath.ToSlash(t.TempDir())
	r, err := c.SessionOpen(t.Context(), protocol.SessionOpenParams{SessionID: "s1", Workspace: &uri})
	if err != nil {
		t.Fatal(err)
	}
	return r.Session
}

// testLog writes the server's log into the test's, until the test is over.
type testLog struct{ t testing.TB }

var testLogMu sync.Mutex

func (l testLog) Write(p []byte) (int, error) {
	testLogMu.Lock()
	defer testLogMu.Unlock()
	if l.t.Context().Err() == nil {
		l.t.Logf("%s", p)
	}
	return len(p), nil
}
