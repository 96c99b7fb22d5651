package connection

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// newPool is a pool that ends with the test.
func newPool(t testing.TB) *Pool {
	t.Helper()
	p := NewPool(Options{Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// resolve is the route to a host of a client's configuration.
func resolve(t testing.TB, p *Pool, c *sshtest.Client, host string) *Route {
	t.Helper()
	r, err := p.Resolve(t.Context(), Destination{Host: host, ConfigFile: c.ConfigFile})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// dial connects to a host of a client's configuration.
func dial(t testing.TB, p *Pool, c *sshtest.Client, host string) *Conn {
	t.Helper()
	conn, err := p.Dial(t.Context(), resolve(t, p, c, host), nil)
	if err != nil {
		t.Fatal(explain(err))
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// explain is an error with its hint.
func explain(err error) string {
	var e *tool.Error
	if errors.As(err, &e) && e.Hint != "" {
		return e.Message + " [" + e.Hint + "]"
	}
	return err.Error()
}

// run runs a command to its end; stdin may be nil.
func run(ctx context.Context, c *Conn, command string, stdin io.Reader) (Result, error) {
	s, err := c.Exec(ctx, command)
	if err != nil {
		return Result{}, err
	}
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		if stdin != nil {
			_, _ = io.Copy(s, stdin) // a command need not read all of its input
		}
		_ = s.CloseWrite() // it may be gone
	}()
	stdout, err := io.ReadAll(s)
	exit, endErr := s.Wait(ctx)
	err = errors.Join(err, endErr, s.Close())
	<-fed
	return Result{Exit: exit, Stdout: stdout, Stderr: s.Stderr()}, err
}

// says runs a command and wants this output.
func says(t testing.TB, c *Conn, command, want string) {
	t.Helper()
	r, err := run(t.Context(), c, command, nil)
	if err != nil {
		t.Fatal(explain(err))
	}
	if got := string(r.Stdout); got != want {
		t.Fatalf("%s says %q, want %q (%s; stderr %q)", command, got, want, r.Exit, r.Stderr)
	}
}

// TestNoName: a host with its port, or in brackets, is told from one that is away.
func TestNoName(t *testing.T) {
	t.Parallel()
	for _, host := range []string{"127.0.0.1:22", "[::1]", "[::1]:22"} {
		c := sshtest.NewClient(t, "", "Host box\n User u\n HostName "+host+"\n")
		p := newPool(t)
		_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != tool.BackendUnavailable || e.Retryable || !strings.Contains(e.Hint, "members of their own") {
			t.Errorf("%s: got %s", host, explain(err))
		}
	}
}
