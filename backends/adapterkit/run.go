package adapterkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// Options say how an adapter is served. The zero value is right for a program
// that the service started.
type Options struct {
	// In and Out are the connection; nil means [os.Stdin] and [os.Stdout]. What of
	// them is an [io.Closer] is closed.
	In  io.Reader
	Out io.Writer
	// CloseTimeout is how long [Backend.Close] may take; 0 means
	// [DefaultCloseTimeout]. The service gives an adapter the profile's
	// shutdown_timeout_ms from the end of its input to its exit, which must be
	// longer.
	CloseTimeout time.Duration
	// Log gets what the host cannot be told; nil drops it. It must not write to
	// standard output.
	Log *slog.Logger
}

// DefaultCloseTimeout is within the 60 s that a service gives an adapter, and
// leaves room for the end of the last requests.
const DefaultCloseTimeout = 50 * time.Second

// Run serves one session and returns when it is over and nothing of it is left.
//
// It ends when the input ends, when the connection fails or carries what is no
// frame, when ctx ends, and when [Session.Fail] is called. Then, in this order:
// every request is cancelled and its handler waited for, the lifetime of the
// session ends, and b is closed. A read or write that cannot be interrupted holds
// none of that up.
//
// The error is nil after an end of file between frames, or of ctx, and a Close
// that succeeded. The caller must exit soon after Run returns: a read that cannot
// be interrupted is left behind.
func Run(ctx context.Context, b Backend, o Options) error {
	if o.In == nil {
		o.In = os.Stdin
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.CloseTimeout <= 0 {
		o.CloseTimeout = DefaultCloseTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	serving, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	lifetime, over := context.WithCancel(context.WithoutCancel(ctx))
	defer over()

	a := &adapter{backend: b, operations: operations{ids: map[string]string{}}}
	stream := &stdio{in: o.In, out: o.Out}
	server := wire.NewServer(stream, a, wire.ServerOptions{Log: o.Log})
	a.session = &Session{lifetime: lifetime, emit: server.Emit, end: fail, abandon: stream.abandon}
	err := server.Serve(serving)
	if cause := context.Cause(serving); cause != nil && ctx.Err() == nil {
		err = cause // it ended itself
	}
	if errors.Is(err, errAsked) || ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		err = nil // it was told to end
	}
	over()
	if !a.began() {
		return err
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), o.CloseTimeout)
	defer cancel()
	if closeErr := b.Close(closing); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("the session was not closed in order: %w", closeErr))
	}
	return err
}

// errAsked ends a session that the host has asked to end.
var errAsked = errors.New("the host asked for the end")

// adapter is the handler of a connection: it puts a Backend behind what every
// adapter must keep to.
type adapter struct {
	backend    Backend
	session    *Session
	operations operations

	mu    sync.Mutex
	state state
	ready wire.Initialized // the answer, once there is one
}

// state is how far the session is.
type state int

const (
	fresh state = iota
	initializing
	bound
	refused // by a failed initialize
)

// began reports whether the backend has anything to close.
func (a *adapter) began() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.state != fresh
}

// Handle handles one request of the connection.
func (a *adapter) Handle(ctx context.Context, r *wire.Request) (wire.Response, error) {
	if r.Method == wire.MethodInitialize {
		out, err := a.initialize(ctx, r)
		if err != nil {
			return wire.Response{}, err
		}
		return wire.Response{Data: out}, nil
	}
	request := &Request{Method: r.Method, Data: r.Data, Body: r.Body, session: a.session, wire: r}
	defer request.live.end()
	if r.Method == wire.MethodProcessStart {
		return a.operations.start(r, func() (wire.Response, error) { return a.backend.Handle(ctx, request) })
	}
	response, err := a.backend.Handle(ctx, request)
	if err == nil && r.Method == wire.MethodProcessList {
		err = a.operations.check(response)
	}
	if err != nil && response.Stream != nil {
		err = errors.Join(err, response.Stream.Close())
	}
	return response, err
}

// initialize binds the session, or answers the same again.
func (a *adapter) initialize(ctx context.Context, r *wire.Request) (wire.Initialized, error) {
	var in wire.Initialize
	if err := r.Decode(&in); err != nil {
		return wire.Initialized{}, err
	}
	a.mu.Lock()
	if a.state != fresh {
		defer a.mu.Unlock()
		if a.state != bound { // wire lets nothing in meanwhile
			return wire.Initialized{}, tool.Errorf(tool.InvalidParams, "initialize was tried on this connection already: open a new one")
		}
		return a.ready, a.session.binding.Same(in, "the adapter")
	}
	a.state = initializing
	a.session.binding, a.session.raw = in, r.Data
	a.mu.Unlock()

	out, err := a.backend.Initialize(ctx, a.session, in)
	if err == nil {
		err = ctx.Err()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		a.state = refused
		return wire.Initialized{}, err
	}
	out.Version = wire.Version
	a.state, a.ready = bound, out
	return out, nil
}

// InvokeTool's part of a request: whether it is still being handled.
type live struct {
	mu   sync.Mutex
	over bool
}

func (l *live) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
}

func (l *live) ended() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}

func (r *Request) invoke(ctx context.Context, call wire.ToolCall) (tool.Result, error) {
	switch {
	case r.Method != wire.MethodRunCode:
		return tool.Result{}, tool.Errorf(tool.Unsupported, "a tool of the host can be called from %s only, not from %s", wire.MethodRunCode, r.Method)
	case r.live.ended():
		return tool.Result{}, tool.Errorf(tool.Cancelled, "the program that calls %s has ended", call.Name)
	}
	return r.wire.Callback(ctx, call)
}

// stdio makes one stream of an input and an output.
type stdio struct {
	in       io.Reader
	out      io.Writer
	mu       sync.Mutex // guards cut and err
	cut      bool
	closeIn  sync.Once
	closeOut sync.Once
	err      error
}

func (s *stdio) Read(p []byte) (int, error) { return s.in.Read(p) }

func (s *stdio) Write(p []byte) (int, error) {
	s.mu.Lock()
	cut := s.cut
	s.mu.Unlock()
	if cut {
		return 0, io.ErrClosedPipe
	}
	return s.out.Write(p)
}

// abandon lets nothing more be written.
func (s *stdio) abandon() {
	s.mu.Lock()
	s.cut = true
	s.mu.Unlock()
	s.closeOut.Do(func() { s.close(s.out) })
}

// Close closes both ends.
func (s *stdio) Close() error {
	s.closeOut.Do(func() { s.close(s.out) })
	s.closeIn.Do(func() { s.close(s.in) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *stdio) close(end any) {
	c, ok := end.(io.Closer)
	if !ok {
		return
	}
	err := c.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}
