// Package client is a typed client of the editor protocol, for desktop apps,
// command line tools and tests. It starts the service as a process ([Start]) or
// speaks over any pair of streams ([New]).
//
// It adds no behaviour of its own to the protocol: no retries, no reconnecting
// and no cache.
package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// Limits of a client.
const (
	// closeGrace is how long Close waits for the service to end by itself: its
	// own shutdown is bounded by 7 s, and the end of a process takes a moment.
	closeGrace = 10 * time.Second
	// maxServerRequests is how many requests of the service are worked on at
	// once; it asks one person and calls a program's tools.
	maxServerRequests = 64
)

// Options say what a client does about what the service sends. Handlers of
// notifications are called in order, one at a time, on the reading goroutine:
// they must not block and must not make calls; whatever takes longer belongs on
// a goroutine of the caller's.
type Options struct {
	SessionChanged     func(protocol.SessionChangedParams)
	SessionRemoved     func(protocol.SessionRemovedParams)
	ArtifactsChanged   func(protocol.Empty)
	ExecutionStarted   func(protocol.ExecutionParams)
	ExecutionCompleted func(protocol.ExecutionParams)
	ExecutionFailed    func(protocol.ExecutionParams)
	ProcessEvent       func(protocol.ProcessEventParams)
	ProcessOutput      func(protocol.ProcessOutputParams)
	ArtifactPublished  func(protocol.ArtifactPublished)
	ConfigChanged      func(protocol.ConfigChangedParams)
	Progress           func(protocol.ProgressParams)
	LogMessage         func(protocol.LogMessageParams)
	LogTrace           func(protocol.LogTraceParams)

	// GuardConfirm and ToolInvoke answer the service's requests, each on a
	// goroutine of its own, until their context ends: by the service, when nobody
	// waits for the answer any more, or with the connection. Without one the service
	// is told that there is no such method. The capability must be announced at
	// initialize.
	GuardConfirm func(context.Context, protocol.GuardConfirmParams) (protocol.GuardConfirmResult, error)
	ToolInvoke   func(context.Context, protocol.ToolInvokeParams) (protocol.ToolInvokeResult, error)

	// Log is told of notifications that cannot be understood; nil discards.
	Log *slog.Logger
}

// Client is one connection to a service. Its methods may be called
// concurrently. A call whose context ends is cancelled at the service, and
// returns at once with the context's error. An error answer is a
// [*protocol.Error].
type Client struct {
	o      Options
	stream *frame.Stream
	conn   jsonrpc2.Conn
	cancel context.CancelFunc
	slots  chan struct{}

	mu      sync.Mutex
	ended   error // why reading ended
	process *process
	// answering cancels what answers the service's requests, by their ids.
	answering map[jsonrpc2.ID]context.CancelFunc
}

// New makes a client that reads from in and writes to out, and starts it.
// Closing either must end a call that blocks on it.
func New(in io.ReadCloser, out io.WriteCloser, o Options) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		o: o, slots: make(chan struct{}, maxServerRequests),
		answering: map[jsonrpc2.ID]context.CancelFunc{},
	}
	c.stream = frame.New(in, out, frame.Options{
		Decoded:  true,
		ReadEnd:  c.readEnded,
		WriteEnd: c.readEnded,
	})
	c.conn = jsonrpc2.NewConn(c.stream)
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.conn.Go(ctx, c.handle)
	return c
}

func (c *Client) readEnded(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended == nil {
		c.ended = err
	}
}

// Done is closed when the connection has ended and every handler has returned.
func (c *Client) Done() <-chan struct{} { return c.conn.Done() }

// Err is why the connection ended: nil while it lives and after a clean end.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if errors.Is(c.ended, io.EOF) || errors.Is(c.ended, io.ErrClosedPipe) {
		return nil
	}
	return c.ended
}

// Call makes one request and decodes its result into result, unless that is
// nil. Most callers want the typed methods.
func (c *Client) Call(ctx context.Context, method string, params, result any) error {
	id, err := c.conn.Call(ctx, method, params, result)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) && id.IsValid() {
		// The connection may have ended as well; then there is nothing to cancel.
		_ = c.Notify(context.WithoutCancel(ctx), protocol.MethodCancel, map[string]any{"id": idValue(id)})
		return fmt.Errorf("%s: %w", method, ctx.Err())
	}
	if wire, ok := errors.AsType[*jsonrpc2.Error](err); ok {
		return &protocol.Error{
			Code:    protocol.Code(wire.Code),
			Message: wire.Message,
			Data:    protocol.ParseErrorData([]byte(wire.Data)),
		}
	}
	return fmt.Errorf("%s: the connection to the service ended: %w", method, err)
}

func idValue(id jsonrpc2.ID) any {
	if n, ok := id.Number(); ok {
		return n
	}
	s, _ := id.StringValue()
	return s
}

// Notify sends a notification.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	return c.conn.Notify(ctx, method, params)
}

// Close ends the connection: shutdown and exit, then the streams. A service
// that does not end in time is left to its own bound, or killed when this
// client started it. Closing again does nothing.
func (c *Client) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
	defer cancel()
	select {
	case <-c.Done():
	default:
		// A service that was not initialized refuses shutdown and heeds exit.
		if err := c.Shutdown(ctx); err != nil {
			c.o.Log.Debug("shutdown", "error", err)
		}
		if err := c.Exit(ctx); err == nil {
			_ = c.stream.Flush(ctx)
		}
	}
	err := c.process.wait(ctx)
	c.cancel()
	closeErr := c.stream.Close()
	select {
	case <-c.Done():
	case <-ctx.Done():
		return errors.Join(err, fmt.Errorf("close: the input does not end: %w", ctx.Err()))
	}
	if c.process == nil {
		err = errors.Join(err, closeErr)
	}
	return err
}

// handle takes what the service sends.
func (c *Client) handle(ctx context.Context, req *jsonrpc2.Request) (any, error) {
	if !req.IsCall() {
		c.notified(req.Method(), req.Params())
		return nil, nil
	}
	var answer func(context.Context, []byte) (any, error)
	switch name := req.Method(); {
	case name == protocol.MethodGuardConfirm && c.o.GuardConfirm != nil:
		answer = answering(c.o.GuardConfirm)
	case name == protocol.MethodToolInvoke && c.o.ToolInvoke != nil:
		answer = answering(c.o.ToolInvoke)
	default:
		return nil, jsonrpc2.Errorf(jsonrpc2.MethodNotFound, "this client has no method %q", name)
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		return nil, jsonrpc2.NewError(jsonrpc2.Code(protocol.CodeOverloaded), "this client is overloaded")
	}
	// Known before the next message is read, which may cancel it.
	id := req.ID()
	answering, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.answering[id] = cancel
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.answering, id)
		c.mu.Unlock()
		cancel()
	}()
	jsonrpc2.Async(ctx)
	return answer(answering, req.Params())
}

// cancelled cancels what answers a request of the service, if anything still
// does.
func (c *Client) cancelled(p protocol.CancelParams) {
	number, err := strconv.ParseInt(string(p.ID), 10, 64)
	if err != nil {
		return // the service counts
	}
	c.mu.Lock()
	cancel := c.answering[jsonrpc2.NewNumberID(number)]
	c.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func answering[P, R any](f func(context.Context, P) (R, error)) func(context.Context, []byte) (any, error) {
	return func(ctx context.Context, raw []byte) (any, error) {
		var params P
		if err := json.Unmarshal(raw, &params); err != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InvalidParams, "%v", err)
		}
		result, err := f(ctx, params)
		if err != nil {
			return nil, jsonrpc2.Errorf(jsonrpc2.InternalError, "%v", err)
		}
		return result, nil
	}
}

// notified calls the handler of a notification. Unknown ones are ignored.
func (c *Client) notified(name string, params []byte) {
	var err error
	switch name {
	case protocol.MethodCancel:
		err = deliver(params, c.cancelled)
	case protocol.MethodSessionChanged:
		err = deliver(params, c.o.SessionChanged)
	case protocol.MethodArtifactChanged:
		err = deliver(params, c.o.ArtifactsChanged)
	case protocol.MethodSessionRemoved:
		err = deliver(params, c.o.SessionRemoved)
	case protocol.MethodExecutionStarted:
		err = deliver(params, c.o.ExecutionStarted)
	case protocol.MethodExecutionCompleted:
		err = deliver(params, c.o.ExecutionCompleted)
	case protocol.MethodExecutionFailed:
		err = deliver(params, c.o.ExecutionFailed)
	case protocol.MethodProcessEvent:
		err = deliver(params, c.o.ProcessEvent)
	case protocol.MethodProcessOutput:
		err = deliver(params, c.o.ProcessOutput)
	case protocol.MethodArtifactPublished:
		err = deliver(params, c.o.ArtifactPublished)
	case protocol.MethodConfigChanged:
		err = deliver(params, c.o.ConfigChanged)
	case protocol.MethodProgress:
		err = deliver(params, c.o.Progress)
	case protocol.MethodLogMessage:
		err = deliver(params, c.o.LogMessage)
	case protocol.MethodLogTrace:
		err = deliver(params, c.o.LogTrace)
	}
	if err != nil {
		c.o.Log.Warn("a notification cannot be understood", "method", name, "error", err)
	}
}

func deliver[P any](raw []byte, f func(P)) error {
	if f == nil {
		return nil
	}
	var params P
	if err := json.Unmarshal(raw, &params); err != nil {
		return err
	}
	f(params)
	return nil
}
