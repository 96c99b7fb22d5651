package adapterkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// The test binary is a peer too: "peer", and what it does.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "peer" {
		if err := playPeer(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const (
	token    = "5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e5e"
	patience = 30 * time.Second
)

// duplex is one end of two pipes.
type duplex struct {
	io.ReadCloser
	io.WriteCloser
}

func (d duplex) Close() error { return errors.Join(d.WriteCloser.Close(), d.ReadCloser.Close()) }

// session is a host and the adapter that it speaks to.
type session struct {
	*wire.Client
	events chan tool.ProcessEvent
	ran    chan error // what Run returned
}

// serve runs a backend, for a host that answers callbacks with answer.
func serve(t *testing.T, b Backend, answer func(context.Context, wire.ToolCall) (tool.Result, error)) *session {
	t.Helper()
	in, hostOut := io.Pipe()
	hostIn, out := io.Pipe()
	s := &session{events: make(chan tool.ProcessEvent, 100), ran: make(chan error, 1)}
	ran := s.ran
	go func() { ran <- Run(context.Background(), b, Options{In: in, Out: out}) }()
	s.Client = wire.NewClient(duplex{hostIn, hostOut}, wire.ClientOptions{
		Token: token, OnCallback: answer, OnEvent: func(e tool.ProcessEvent) { s.events <- e },
	})
	t.Cleanup(func() {
		_ = s.Close()
		if s.ran != nil {
			s.wait(t)
		}
	})
	return s
}

// wait waits for the end of the adapter.
func (s *session) wait(t *testing.T) error {
	t.Helper()
	ran := s.ran
	s.ran = nil
	select {
	case err := <-ran:
		return err
	case <-time.After(patience):
		t.Fatal("the adapter does not end")
		return nil
	}
}

// binding is what these sessions are bound to.
func binding() wire.Initialize {
	return wire.Initialize{Root: "/w", Session: "s", Identity: "i", Environment: map[string]string{"A": "1"}}
}

func (s *session) initialize(t *testing.T) wire.Initialized {
	t.Helper()
	out, err := s.Initialize(t.Context(), binding())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// least are the handlers that there must be.
func least() Handlers {
	return Handlers{
		Initialize: func(_ context.Context, _ *Session, in wire.Initialize) (string, error) { return in.Root, nil },
		Execute: func(_ context.Context, c Call) (tool.Result, error) {
			return text(c.Name + string(c.Arguments) + c.Actor + string(c.Mode)), nil
		},
	}
}

func text(s string) tool.Result {
	return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: s}}}
}

func backend(t *testing.T, h Handlers) Backend {
	t.Helper()
	b, err := New(h)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (s *session) execute(ctx context.Context, name string) (string, error) {
	reply, err := s.Call(ctx, wire.MethodExecute, &wire.Execute{Call: wire.ToolCall{Name: name, Arguments: `{"a":1}`}, Actor: "s"}, nil)
	if err != nil {
		return "", err
	}
	r, err := wire.ParseResult(reply.Data)
	if err != nil || len(r.Content) != 1 {
		return "", fmt.Errorf("%s: %w", reply.Data, err)
	}
	return r.Content[0].Text, nil
}

func wantKind(t *testing.T, err error, kind tool.Kind, words ...string) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind {
		t.Errorf("%v (%s), want %s", err, tool.KindOf(err), kind)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}
