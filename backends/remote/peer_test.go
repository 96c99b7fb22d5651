package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// soon bounds what must not take long; it is no measure of anything.
const soon = 20 * time.Second

func binding() backends.Binding {
	return backends.Binding{
		Session: "s1", Environment: "caisson-1",
		Profile: profile.Profile{Name: "p", Workspace: "/workspace", PermissionMode: tool.Standard, MaxPermissionMode: tool.Standard},
		Secrets: backends.Secrets{Token: strings.Repeat("5e", 32), Environment: map[string]string{"A": "1"}},
	}
}

// ourCaps are what our worker announces.
var ourCaps = []string{
	wire.CapProcessStart, wire.CapBulk, wire.CapErrors, wire.CapFS, wire.CapProcess, wire.CapLimits, wire.CapShutdown, wire.CapTools, wire.CapActors,
}

// A far is a host and the worker that it reaches, scripted by a test. What a
// method answers is looked up at each request; methods without an entry are
// unknown.
type far struct {
	caps []string

	mu        sync.Mutex
	answer    map[string]func(ctx context.Context, r *wire.Request) (wire.Response, error)
	processes []tool.Process // what process/list answers
	inits     []wire.Initialize
	requests  []string // methods but initialize and process/list, in order
	servers   []*wire.Server
	conns     []net.Conn
	created   int
	attached  int
	removed   int
	dialled   int
	// dial and attach, if set, decide before a stream is made.
	dial    func(ctx context.Context, n int) error
	attach  func() error
	create  func() error
	stopped bool   // by somebody
	started int    // how often it was started again
	found   func() // is called, if set, when it is found stopped and is not to be started
	stderr  string // what streams say beside themselves, with "secret" in it taken out
	shared  string // the directory that is said to be seen by both sides
	// connect is what is done about the host's socket.
	connect func(path, nonce string) (connected bool)
	token   *wire.Token
	serves  sync.WaitGroup
}

func newFar(caps ...string) *far {
	return &far{caps: caps, answer: make(map[string]func(context.Context, *wire.Request) (wire.Response, error)), token: wire.NewToken(true)}
}

func (f *far) on(method string, answer func(ctx context.Context, r *wire.Request) (wire.Response, error)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer[method] = answer
}

// says has a method answer always the same.
func (f *far) says(method string, data any, body []byte) {
	f.on(method, func(context.Context, *wire.Request) (wire.Response, error) {
		return wire.Response{Data: data, Body: body}, nil
	})
}

func (f *far) Create(context.Context, backends.Binding, backends.Progress) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created++
	if f.create != nil {
		return f.create()
	}
	return nil
}

func (f *far) Attach(_ context.Context, b backends.Binding) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.attached++
	if f.stopped && b.OnlyRunning {
		if found := f.found; found != nil {
			f.mu.Unlock()
			found()
			f.mu.Lock()
		}
		return tool.Errorf(tool.BackendUnavailable, "it is %w", backends.ErrStopped)
	}
	if f.stopped {
		f.stopped = false
		f.started++
	}
	if f.attach != nil {
		return f.attach()
	}
	return nil
}

func (f *far) Remove(context.Context, backends.Binding) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.removed++
	return nil
}

func (f *far) Dial(ctx context.Context, _ backends.Binding) (Stream, error) {
	f.mu.Lock()
	f.dialled++
	n, dial := f.dialled, f.dial
	f.mu.Unlock()
	if dial != nil {
		if err := dial(ctx, n); err != nil {
			return Stream{}, err
		}
	}
	host, worker := net.Pipe()
	f.serve(worker)
	s := Stream{ReadWriteCloser: host, SharedDirectory: f.shared}
	if f.stderr != "" {
		s.Said = func() string { return f.stderr }
		s.Redact = func(text string) string { return strings.ReplaceAll(text, "secret", "…") }
	}
	return s, nil
}

// serve starts the worker's end of a connection.
func (f *far) serve(conn net.Conn) {
	server := wire.NewServer(conn, f, wire.ServerOptions{Token: f.token})
	f.mu.Lock()
	f.servers = append(f.servers, server)
	f.conns = append(f.conns, conn)
	f.mu.Unlock()
	f.serves.Go(func() { _ = server.Serve(context.Background()) })
}

func (f *far) Handle(ctx context.Context, r *wire.Request) (wire.Response, error) {
	f.mu.Lock()
	answer := f.answer[r.Method]
	switch r.Method {
	case wire.MethodInitialize:
		var in wire.Initialize
		if err := r.Decode(&in); err != nil {
			f.mu.Unlock()
			return wire.Response{}, err
		}
		f.inits = append(f.inits, in)
		connect := f.connect
		f.mu.Unlock()
		if answer != nil {
			return answer(ctx, r)
		}
		out := wire.Initialized{Version: wire.Version, Root: in.Root, Capabilities: f.caps}
		if in.Socket != nil && connect != nil {
			out.SocketConnected = connect(filepath.Join(f.shared, in.Socket.Path), in.Socket.Nonce)
		}
		return wire.Response{Data: out}, nil
	case wire.MethodProcessList:
		list := append([]tool.Process{}, f.processes...)
		f.mu.Unlock()
		if answer != nil {
			return answer(ctx, r)
		}
		return wire.Response{Data: list}, nil
	}
	f.requests = append(f.requests, r.Method)
	f.mu.Unlock()
	if answer == nil {
		return wire.Response{}, wire.UnknownMethod(r.Method)
	}
	return answer(ctx, r)
}

// cut ends the newest connection from the far side.
func (f *far) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.conns[len(f.conns)-1].Close()
}

// stop is what somebody does to the environment: its connection goes with it.
func (f *far) stop() {
	f.mu.Lock()
	f.stopped = true
	f.mu.Unlock()
	f.cut()
}

// emit sends an event over the newest connection.
func (f *far) emit(e tool.ProcessEvent) {
	f.mu.Lock()
	server := f.servers[len(f.servers)-1]
	f.mu.Unlock()
	server.Emit(e)
}

func (f *far) list(records ...tool.Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.processes = records
}

func (f *far) count(n *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *n
}

func (f *far) asked(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.requests {
		if m == method {
			n++
		}
	}
	return n
}

// open opens the environment, and lets go of it when the test ends.
func open(t *testing.T, f *far, b backends.Binding, o Options) *Environment {
	t.Helper()
	e, err := Open(t.Context(), f, b, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Detach(context.Background()); err != nil {
			t.Error(err)
		}
		f.serves.Wait()
	})
	return e
}

func wantKind(t *testing.T, err error, kind tool.Kind) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind {
		t.Fatalf("%v (%s), want %s", err, tool.KindOf(err), kind)
	}
}

// next wants the next event.
func next(t *testing.T, s backends.Subscription) backends.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	e, err := s.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// nextProcess wants the next process event, whatever changes of state precede it.
func nextProcess(t *testing.T, s backends.Subscription) tool.ProcessEvent {
	t.Helper()
	for {
		if e := next(t, s); e.Process != nil {
			return *e.Process
		}
	}
}

// reach wants the state to be reached.
func reach(t *testing.T, s backends.Subscription, state backends.State) *backends.StateChange {
	t.Helper()
	for {
		if e := next(t, s); e.State != nil && e.State.State == state {
			return e.State
		}
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

var errTest = errors.New("for the test")

func object(text string) json.RawMessage { return json.RawMessage(text) }
