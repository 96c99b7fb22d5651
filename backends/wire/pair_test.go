package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// testToken is a token as a host makes it.
var testToken = strings.Repeat("5e", 32)

// soon bounds what must not take long; it is no measure of anything.
const soon = 20 * time.Second

var binding = Initialize{Root: "/workspace", Session: "s1", Identity: "caisson-1"}

// handlers answers initialize as a worker does, and each other method by its
// function.
type handlers map[string]func(ctx context.Context, r *Request) (Response, error)

func (h handlers) Handle(ctx context.Context, r *Request) (Response, error) {
	if f := h[r.Method]; f != nil {
		return f(ctx, r)
	}
	if r.Method == MethodInitialize {
		return Response{Data: Initialized{Version: Version, Root: "/workspace", Capabilities: []string{CapProcessStart, CapBulk, CapErrors}}}, nil
	}
	return Response{}, UnknownMethod(r.Method)
}

// pair is both ends of one connection.
type pair struct {
	*Client
	server *Server
	served chan error // gets what Serve returned
}

func newPair(t *testing.T, h Handler, co ClientOptions, so ServerOptions) *pair {
	t.Helper()
	host, worker := net.Pipe()
	co.Token = testToken
	p := &pair{server: NewServer(worker, h, so), served: make(chan error, 1)}
	go func() { p.served <- p.server.Serve(context.Background()) }()
	p.Client = NewClient(host, co)
	t.Cleanup(func() {
		p.Close()
		p.wait(t)
	})
	if _, err := p.Initialize(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return p
}

// wait waits for Serve to return, and returns what it did.
func (p *pair) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-p.served:
		p.served <- err
		return err
	case <-time.After(soon):
		t.Fatal("Serve does not return")
		return nil
	}
}

func wantKind(t *testing.T, err error, kind tool.Kind) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind {
		t.Fatalf("%v (%s), want %s", err, tool.KindOf(err), kind)
	}
}

func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(soon):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

func TestCallsRunConcurrentlyAndOutOfOrder(t *testing.T) {
	release := make(chan struct{})
	p := newPair(t, handlers{
		"slow": func(context.Context, *Request) (Response, error) { <-release; return Response{Data: "slow"}, nil },
		"fast": func(context.Context, *Request) (Response, error) { return Response{Data: "fast"}, nil },
	}, ClientOptions{}, ServerOptions{})
	slow := make(chan Reply, 1)
	go func() {
		r, _ := p.Call(t.Context(), "slow", nil, nil)
		slow <- r
	}()
	for range 50 {
		r, err := p.Call(t.Context(), "fast", nil, nil)
		if err != nil || string(r.Data) != `"fast"` {
			t.Fatal(r, err)
		}
	}
	close(release)
	if r := receive(t, slow); string(r.Data) != `"slow"` {
		t.Errorf("%s", r.Data)
	}
}

func TestManyCallers(t *testing.T) {
	p := newPair(t, handlers{"echo": func(_ context.Context, r *Request) (Response, error) {
		return Response{Data: r.Data, Body: r.Body}, nil
	}}, ClientOptions{}, ServerOptions{})
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			for j := range 30 {
				data := fmt.Sprintf(`"%d/%d"`, i, j)
				body := bytes.Repeat([]byte{byte(i), byte(j)}, i*j*37)
				r, err := p.Call(t.Context(), "echo", json.RawMessage(data), body)
				if err != nil || string(r.Data) != data || !bytes.Equal(r.Body, body) {
					t.Errorf("%s: %s, %d bytes, %v", data, r.Data, len(r.Body), err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestErrorsKeepTheirKind(t *testing.T) {
	sent := &tool.Error{Kind: tool.PathOutsideRoot, Message: "../x leaves the root", Hint: "stay inside", Path: "../x", Retryable: true}
	p := newPair(t, handlers{
		"fail":  func(context.Context, *Request) (Response, error) { return Response{}, fmt.Errorf("wrapped: %w", sent) },
		"plain": func(context.Context, *Request) (Response, error) { return Response{}, errors.New("") },
		"panic": func(context.Context, *Request) (Response, error) { panic("at the disco") },
		"huge": func(context.Context, *Request) (Response, error) {
			return Response{Data: strings.Repeat("x", MaxFrame)}, nil
		},
		"odd": func(context.Context, *Request) (Response, error) { return Response{Data: func() {}}, nil },
	}, ClientOptions{}, ServerOptions{})
	_, err := p.Call(t.Context(), "fail", nil, nil)
	var got *tool.Error
	if !errors.As(err, &got) || got.Kind != sent.Kind || got.Message != "wrapped: "+sent.Message || got.Hint != sent.Hint || got.Path != sent.Path || !got.Retryable {
		t.Errorf("%+v", got)
	}
	for method, kind := range map[string]tool.Kind{"plain": tool.Internal, "panic": tool.Internal, "huge": tool.Internal, "odd": tool.Internal, "nothing": tool.Unsupported} {
		_, err := p.Call(t.Context(), method, nil, nil)
		wantKind(t, err, kind)
		if err.Error() == "" || strings.Contains(err.Error(), "disco") {
			t.Errorf("%s: %q", method, err)
		}
	}
	_, err = p.Call(t.Context(), "fail", json.RawMessage(`"`+strings.Repeat("x", MaxFrame)+`"`), nil)
	wantKind(t, err, tool.InvalidParams)
	if p.Err() != nil {
		t.Errorf("the connection ended: %v", p.Err())
	}
}

func TestCallbacks(t *testing.T) {
	parent := func(ctx context.Context, r *Request) (Response, error) {
		var n int
		if err := r.Decode(&n); err != nil {
			return Response{}, err
		}
		results := make([]string, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				result, err := r.Callback(ctx, ToolCall{Name: "nested", Arguments: fmt.Sprintf(`{"n":%d}`, i)})
				if err != nil {
					results[i] = err.Error()
					return
				}
				results[i] = result.Content[0].Text
			})
		}
		wg.Wait()
		return Response{Data: results}, nil
	}
	p := newPair(t, handlers{MethodRunCode: parent, "other": parent}, ClientOptions{
		OnCallback: func(_ context.Context, call ToolCall) (tool.Result, error) {
			if call.Arguments == `{"n":3}` {
				return tool.Result{}, errors.New("no threes")
			}
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: call.Name + call.Arguments}}}, nil
		},
	}, ServerOptions{})
	r, err := p.Call(t.Context(), MethodRunCode, 200, nil)
	if err != nil {
		t.Fatal(err)
	}
	var results []string
	if err := r.Decode(&results); err != nil {
		t.Fatal(err)
	}
	for i, got := range results {
		want := fmt.Sprintf(`nested{"n":%d}`, i)
		if i == 3 {
			want = "no threes"
		}
		if got != want {
			t.Errorf("callback %d: %q, want %q", i, got, want)
		}
	}
	r, err = p.Call(t.Context(), "other", 1, nil)
	if err != nil || !strings.Contains(string(r.Data), "outside of run_code") {
		t.Errorf("%s, %v", r.Data, err)
	}
}

func TestCallbackEndsWithItsParent(t *testing.T) {
	inside, ended := make(chan struct{}), make(chan struct{})
	p := newPair(t, handlers{MethodRunCode: func(ctx context.Context, r *Request) (Response, error) {
		_, err := r.Callback(ctx, ToolCall{Name: "nested", Arguments: "{}"})
		return Response{}, err
	}}, ClientOptions{OnCallback: func(ctx context.Context, _ ToolCall) (tool.Result, error) {
		close(inside)
		<-ctx.Done()
		close(ended)
		return tool.Result{}, ctx.Err()
	}}, ServerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-inside; cancel() }()
	_, err := p.Call(ctx, MethodRunCode, nil, nil)
	wantKind(t, err, tool.Cancelled)
	receive(t, ended)
}

func TestEvents(t *testing.T) {
	events := make(chan tool.ProcessEvent, 100)
	p := newPair(t, handlers{}, ClientOptions{OnEvent: func(e tool.ProcessEvent) { events <- e }}, ServerOptions{})
	for i := range 100 {
		p.server.Emit(tool.ProcessEvent{Type: tool.EventUpdated, Cause: tool.CauseNaturalExit, Process: tool.Process{ID: "p", PID: i}})
	}
	for i := range 100 {
		if e := receive(t, events); e.Process.PID != i || e.Type != tool.EventUpdated || e.Cause != tool.CauseNaturalExit {
			t.Fatalf("event %d: %+v", i, e)
		}
	}
}

func TestOverload(t *testing.T) {
	release := make(chan struct{})
	running := make(chan struct{}, 8)
	p := newPair(t, handlers{
		"wait": func(context.Context, *Request) (Response, error) {
			running <- struct{}{}
			<-release
			return Response{}, nil
		},
	}, ClientOptions{}, ServerOptions{MaxRequests: 4, MaxPending: 1000})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if _, err := p.Call(t.Context(), "wait", nil, nil); err != nil {
				t.Error(err)
			}
		})
		receive(t, running)
	}
	_, err := p.Call(t.Context(), "wait", nil, nil)
	wantKind(t, err, tool.Overloaded)
	close(release)
	wg.Wait()
	_, err = p.Call(t.Context(), "wait", nil, make([]byte, 5<<20))
	wantKind(t, err, tool.Overloaded)
	if _, err := p.Call(t.Context(), "wait", nil, make([]byte, 1000)); err != nil {
		t.Errorf("after an overload: %v", err)
	}
}

// All that one client of the service may have waiting in a session leaves room
// for a request more, such as the one that stops a process.
func TestManyWaits(t *testing.T) {
	const calls, waits, subscriptions = 64, 1024, 256
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := make(chan struct{}, calls+waits+subscriptions)
	p := newPair(t, handlers{
		"wait": func(ctx context.Context, _ *Request) (Response, error) {
			running <- struct{}{}
			<-ctx.Done()
			return Response{}, ctx.Err()
		},
		"stop": func(context.Context, *Request) (Response, error) { return Response{}, nil },
	}, ClientOptions{}, ServerOptions{})
	var wg sync.WaitGroup
	for range cap(running) {
		wg.Go(func() {
			if _, err := p.Call(ctx, "wait", nil, nil); tool.KindOf(err) != tool.Cancelled {
				t.Errorf("a wait ended with %v", err)
				running <- struct{}{}
			}
		})
	}
	for range cap(running) {
		receive(t, running)
	}
	if _, err := p.Call(t.Context(), "stop", nil, nil); err != nil {
		t.Errorf("beside %d waits: %v", cap(running), err)
	}
	cancel()
	wg.Wait()
}
