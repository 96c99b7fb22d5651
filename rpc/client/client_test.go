package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// service is the other end, played by the library's own stream.
type service struct {
	jsonrpc2.Conn
	in  *io.PipeReader
	out *io.PipeWriter

	mu       sync.Mutex
	got      []string // methods and parameters, in order
	canceled chan string
}

// connect makes a client and a service that answers with what handle returns.
func connect(t *testing.T, o Options, handle func(ctx context.Context, method string, params []byte) (any, error)) (*Client, *service) {
	t.Helper()
	in, serviceOut := io.Pipe()
	serviceIn, out := io.Pipe()
	s := &service{in: serviceIn, out: serviceOut, canceled: make(chan string, 10)}
	s.Conn = jsonrpc2.NewConn(jsonrpc2.NewHeaderStream(struct {
		io.Reader
		io.Writer
		io.Closer
	}{serviceIn, serviceOut, closers{serviceIn, serviceOut}}))
	s.Conn.Go(t.Context(), func(ctx context.Context, r *jsonrpc2.Request) (any, error) {
		method, params := strings.Clone(r.Method()), append([]byte(nil), r.Params()...)
		s.mu.Lock()
		s.got = append(s.got, strings.TrimSpace(method+" "+string(params)))
		s.mu.Unlock()
		switch {
		case method == protocol.MethodCancel:
			s.canceled <- string(params)
			return nil, nil
		case method == protocol.MethodExit:
			serviceIn.Close()
			serviceOut.Close()
			return nil, nil
		case !r.IsCall() || handle == nil:
			return nil, nil
		}
		jsonrpc2.Async(ctx)
		return handle(ctx, method, params)
	})
	c := New(in, out, o)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.in.Close()
		s.out.Close()
		<-s.Done()
	})
	return c, s
}

type closers []io.Closer

func (c closers) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

func TestInitialize(t *testing.T) {
	c, s := connect(t, Options{}, func(_ context.Context, method string, _ []byte) (any, error) {
		return protocol.InitializeResult{ProtocolVersion: 1}, nil
	})
	r, err := c.Initialize(t.Context(), protocol.InitializeParams{})
	if err != nil || r.ProtocolVersion != 1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-s.Done()
	s.mu.Lock()
	defer s.mu.Unlock()
	want := []string{`initialize {"processId":null}`, `initialized {}`, `shutdown`, `exit`}
	if strings.Join(s.got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("the service got %q", s.got)
	}
}

func TestErrorAnswer(t *testing.T) {
	c, _ := connect(t, Options{}, func(_ context.Context, method string, _ []byte) (any, error) {
		if method == protocol.MethodShutdown {
			return nil, nil
		}
		return nil, &jsonrpc2.Error{Code: -32010, Message: "no such session", Data: jsonrpc2.RawMessage(`{"kind":"sessionNotFound","retryable":false,"new":1}`)}
	})
	_, err := c.SessionGet(t.Context(), protocol.SessionParams{SessionID: "x"})
	var e *protocol.Error
	if !errors.As(err, &e) || e.Kind() != protocol.KindSessionNotFound || e.Code != protocol.CodeSessionNotFound || e.Error() != "no such session" {
		t.Fatalf("got %#v", err)
	}
}

// TestCancel tells the service, and does not wait for it.
func TestCancel(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	c, s := connect(t, Options{}, func(_ context.Context, method string, _ []byte) (any, error) {
		if method == protocol.MethodToolCall {
			close(entered)
			<-release
		}
		return protocol.Empty{}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	_, err := c.ToolCall(ctx, protocol.ToolCallParams{})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if got := <-s.canceled; got != `{"id":1}` {
		t.Fatalf("the service was told to cancel %s", got)
	}
	close(release)
	// The late answer is no answer to anything else.
	if _, err := c.SessionList(t.Context(), protocol.SessionListParams{}); err != nil {
		t.Fatal(err)
	}
}

func TestNotifications(t *testing.T) {
	got := make(chan any, 20)
	c, s := connect(t, Options{
		SessionChanged:     func(p protocol.SessionChangedParams) { got <- p.Session.ID },
		ExecutionStarted:   func(p protocol.ExecutionParams) { got <- "started " + p.CallID },
		ExecutionCompleted: func(p protocol.ExecutionParams) { got <- "completed " + p.CallID },
		ExecutionFailed:    func(p protocol.ExecutionParams) { got <- "failed " + p.Failure.Message },
		ProcessEvent:       func(p protocol.ProcessEventParams) { got <- p.Type },
		ProcessOutput:      func(p protocol.ProcessOutputParams) { got <- string(p.Data) },
		ArtifactPublished:  func(p protocol.ArtifactPublished) { got <- p.Artifact.URI },
		ConfigChanged:      func(p protocol.ConfigChangedParams) { got <- p.Problem },
		Progress:           func(p protocol.ProgressParams) { got <- p.Token },
		LogMessage:         func(p protocol.LogMessageParams) { got <- p.Message },
		LogTrace:           func(p protocol.LogTraceParams) { got <- p.Message },
	}, nil)
	_ = c
	for _, n := range []struct {
		method, params string
		want           any
	}{
		{"session/changed", `{"session":{"id":"s1"}}`, "s1"},
		{"from/theFuture", `{}`, nil},
		{"session/changed", `{"session":"not one"}`, nil},
		{"execution/started", `{"callId":"c"}`, "started c"},
		{"execution/completed", `{"callId":"c"}`, "completed c"},
		{"execution/failed", `{"failure":{"message":"m"}}`, "failed m"},
		{"process/event", `{"type":"exited"}`, protocol.ProcessEventExited},
		{"process/output", `{"data":"aGk="}`, "hi"},
		{"artifact/published", `{"artifact":{"uri":"u"}}`, "u"},
		{"config/changed", `{"problem":"p"}`, "p"},
		{"$/progress", `{"token":7}`, protocol.Token("7")},
		{"window/logMessage", `{"type":2,"message":"w"}`, "w"},
		{"$/logTrace", `{"message":"t"}`, "t"},
	} {
		if err := s.Notify(t.Context(), n.method, json.RawMessage(n.params)); err != nil {
			t.Fatal(err)
		}
		if n.want != nil {
			if g := <-got; g != n.want {
				t.Errorf("%s gives %v, want %v", n.method, g, n.want)
			}
		}
	}
}

// TestServerRequests answers the service's requests, each at its own pace.
func TestServerRequests(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	c, s := connect(t, Options{
		GuardConfirm: func(_ context.Context, p protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error) {
			if p.Tool == "slow" {
				close(asked)
				<-release
			}
			return protocol.GuardConfirmResult{Decision: protocol.Allow}, nil
		},
	}, nil)
	_ = c
	slow := make(chan error, 1)
	go func() {
		_, err := s.Call(t.Context(), protocol.MethodGuardConfirm, protocol.GuardConfirmParams{Tool: "slow"}, nil)
		slow <- err
	}()
	<-asked
	var r protocol.GuardConfirmResult
	if _, err := s.Call(t.Context(), protocol.MethodGuardConfirm, protocol.GuardConfirmParams{Tool: "bash"}, &r); err != nil || r.Decision != protocol.Allow {
		t.Fatalf("got %+v, %v", r, err)
	}
	close(release)
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	_, err := s.Call(t.Context(), protocol.MethodToolInvoke, protocol.ToolInvokeParams{}, nil)
	var wire *jsonrpc2.Error
	if !errors.As(err, &wire) || wire.Code != jsonrpc2.MethodNotFound {
		t.Fatalf("a request that nobody handles gives %v", err)
	}
	_, err = s.Call(t.Context(), protocol.MethodGuardConfirm, []int{1}, nil)
	if !errors.As(err, &wire) || wire.Code != jsonrpc2.InvalidParams {
		t.Fatalf("bad parameters give %v", err)
	}
}

// TestServiceDies ends pending calls with the connection.
func TestServiceDies(t *testing.T) {
	var s *service
	c, s := connect(t, Options{}, func(_ context.Context, method string, _ []byte) (any, error) {
		s.out.Close()
		return nil, nil
	})
	if _, err := c.SessionList(t.Context(), protocol.SessionListParams{}); err == nil || !strings.Contains(err.Error(), "connection") {
		t.Fatalf("got %v", err)
	}
	<-c.Done()
	if err := c.Err(); err != nil {
		t.Fatalf("a clean end is %v", err)
	}
}

// TestGarbage ends the connection with the reason.
func TestGarbage(t *testing.T) {
	c, s := connect(t, Options{}, nil)
	if _, err := io.WriteString(s.out, "nothing of ours\n"); err != nil {
		t.Fatal(err)
	}
	<-c.Done()
	if err := c.Err(); err == nil || !strings.Contains(err.Error(), "nothing of ours") {
		t.Fatalf("got %v", err)
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start(exec.Command("/nowhere/caisson"), Options{}); err == nil {
		t.Fatal("a program that is not there starts")
	}
}

// TestStartDies reports how a service ended that is none.
func TestStartDies(t *testing.T) {
	c, err := Start(exec.Command("false"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Initialize(t.Context(), protocol.InitializeParams{}); err == nil {
		t.Fatal("false answers")
	}
	if err := c.Close(); err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("got %v", err)
	}
}
