package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ErrNotSent is in the chain of an error when the request provably never
// reached the peer in whole, so that sending it over another connection is no
// replay.
var ErrNotSent = errors.New("the request was not sent")

// ErrClosed is why the connection of a Client ended that was closed.
var ErrClosed = errors.New("the connection was closed")

// ClientOptions are the choices of a Client.
type ClientOptions struct {
	// Token goes out with every frame; empty sends none.
	Token string
	// Mark is what the peer prints, and a newline, before its first frame. What
	// precedes it is dropped. Without a mark lines are dropped until the first
	// that is a frame. The limits are [MaxNoise] and [MaxBanner] bytes.
	Mark string
	// Blocks says that the stream is one of [Blocking], in whatever it is wrapped.
	Blocks bool
	// OnEvent gets process events in order, on the goroutine that reads, which may be
	// that of a call: it must not block, and neither make calls nor call Close. Nil
	// drops them.
	OnEvent func(tool.ProcessEvent)
	// OnCallback answers nested calls, each on a goroutine of its own. Its
	// context ends with the run_code call that it belongs to. Nil refuses them.
	OnCallback func(ctx context.Context, call ToolCall) (tool.Result, error)
	// CancelGrace is how long a cancelled call waits for its terminal reply, and
	// how long the peer may take nothing while something is to be written; 0
	// means [DefaultCancelGrace].
	CancelGrace time.Duration
	// Log gets what nobody can be told; nil discards it.
	Log *slog.Logger
}

// Client is the host's end of one connection. Its methods may be called
// concurrently.
type Client struct {
	rw     io.ReadWriteCloser
	o      ClientOptions
	reader *Reader // of whose turn it is
	begun  bool    // something was read; of whose turn it is too
	writer *Writer
	lastID atomic.Uint64
	caps   atomic.Pointer[[]string]
	done   chan struct{} // closed by fail

	running       chan struct{} // a place for each callback that runs
	waiting       atomic.Int64
	callbackBytes atomic.Int64
	goroutines    sync.WaitGroup

	mu        sync.Mutex
	turn      turn
	calls     map[string]*call
	callbacks map[string]bool // ids of callbacks that were not answered
	err       error           // why the connection ended
}

// A call is one request in flight.
type call struct {
	ctx     context.Context
	method  string
	stream  bool
	prompt  bool // its caller may read
	maxBody int64
	out     *outbox // the request's body

	// done is closed when the members below are set: the reply came, or never
	// will.
	done chan struct{}
	data []byte
	in   *inbox // the reply's body, which may still be coming
	err  error
	// into makes room for a reply's body; nil for none.
	into func(size int) []byte
	// finished says that done is closed; guarded by Client.mu.
	finished bool

	// nested is the context of its callbacks, once there was one; guarded by
	// Client.mu like cancel.
	nested context.Context
	cancel context.CancelFunc
	// quiesced says that Quiesce cancelled it; guarded by Client.mu too.
	quiesced bool
}

// NewClient makes the host's end of rw and starts to read.
func NewClient(rw io.ReadWriteCloser, o ClientOptions) *Client {
	if o.CancelGrace <= 0 {
		o.CancelGrace = DefaultCancelGrace
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	c := &Client{
		rw: rw, o: o,
		reader:    NewReader(rw),
		writer:    NewWriter(rw),
		done:      make(chan struct{}),
		running:   make(chan struct{}, maxCallbacks),
		calls:     make(map[string]*call),
		callbacks: make(map[string]bool),
	}
	c.reader.quote = true
	c.writer.onStall(o.CancelGrace, func() { c.fail(errStalled) })
	c.turn.init(c.restOver)
	c.goroutines.Go(c.readInTurns)
	return c
}

var (
	errStalled = errors.New("the peer stopped reading")
	errNoReply = errors.New("the peer did not end a cancelled request in time")
)

// Initialize sends initialize and checks the reply. Version and Capabilities are
// filled in. After a failure, and when ctx ends, the connection is of no more
// use and closed.
func (c *Client) Initialize(ctx context.Context, in Initialize) (Initialized, error) {
	in.Version = Version
	in.Capabilities = []string{CapBulk, CapErrors}
	out, err := c.initialize(ctx, in)
	if err != nil {
		c.fail(fmt.Errorf("initialize failed: %w", err))
	}
	return out, err
}

func (c *Client) initialize(ctx context.Context, in Initialize) (Initialized, error) {
	var out Initialized
	stop := context.AfterFunc(ctx, func() { c.fail(context.Cause(ctx)) })
	defer stop()
	reply, err := c.Call(ctx, MethodInitialize, in, nil)
	if err != nil {
		// A stream may end before it has taken the request: its end says why.
		if tool.KindOf(err) == tool.OutcomeUnknown || errors.Is(err, ErrNotSent) && ctx.Err() == nil && c.Err() != nil {
			err = noHandshake(c.Err())
		}
		return out, ended(ctx, err)
	}
	if err := reply.Decode(&out); err != nil {
		return out, err
	}
	if out.Version != Version {
		return out, tool.Errorf(tool.ProtocolMismatch, "the far end speaks protocol %d; this program speaks %d", out.Version, Version).
			WithHint("%s", sameProtocol())
	}
	return out, nil
}

// noHandshake is the error of an initialize that no reply came to. What a peer
// printed instead of one it will print again; a stream that knows more about its
// end than that has said so by a [tool.Error].
func noHandshake(err error) error {
	e := tool.Errorf(tool.BackendUnavailable, "the far end did not answer initialize: %w", err)
	var bad *FrameError
	var said *tool.Error
	printed := errors.As(err, &bad)
	switch {
	case errors.As(err, &said):
		e.Retryable, e.Hint = said.Retryable, said.Hint
		if said.Kind == tool.EnvironmentLost {
			e.Kind = said.Kind
		}
	case !printed:
		e.Retryable = true
	}
	if printed && e.Hint == "" {
		e.Hint = "see whether the program there speaks protocol 4, and prints nothing else to its standard output"
	}
	return e
}

// Has reports whether the worker announced the capability.
func (c *Client) Has(capability string) bool {
	caps := c.caps.Load()
	return caps != nil && slices.Contains(*caps, capability)
}

// ClientRequest is what [Client.Do] sends.
type ClientRequest struct {
	Method string
	// Data is encoded as JSON; nil is none.
	Data any
	// Body goes beside the frame; only a worker with [CapBulk] takes one.
	Body []byte
	// MaxBody is the longest body of a reply that is taken, in bytes; 0 means
	// [MaxBody].
	MaxBody int64
	// Prompt says that the reply is expected at once, and no event right behind it: the
	// caller may read it off a stream of [Blocking] itself.
	Prompt bool
	// Into, unless nil, returns room for a reply's body of at most MaxBody bytes,
	// once it is about to come. It must not block. After an error what it returned
	// must not be used again: some of the body may still come.
	Into func(size int) []byte
}

// Reply is what a call came back with.
type Reply struct {
	// Data is valid JSON, or nil.
	Data json.RawMessage
	// Body is what came beside the frame; nil when nothing did.
	Body []byte
}

// Decode decodes the data into v. Data that does not fit is a
// [tool.ProtocolMismatch].
func (r Reply) Decode(v any) error {
	if r.Data == nil {
		return tool.Errorf(tool.ProtocolMismatch, "the far end's reply has no data")
	}
	if err := decodeInto(r.Data, v); err != nil {
		return tool.Errorf(tool.ProtocolMismatch, "the far end's reply is not what was asked for: %w", err)
	}
	return nil
}

// Call is Do with the usual limits.
func (c *Client) Call(ctx context.Context, method string, data any, body []byte) (Reply, error) {
	return c.Do(ctx, ClientRequest{Method: method, Data: data, Body: body})
}

// Do sends a request and waits for its reply.
//
// When ctx ends it cancels the request and still waits, for at most the
// cancel grace, for the terminal reply: a reply that came first is returned,
// otherwise the error is [tool.Cancelled] or, after a deadline, [tool.Timeout].
// Without a terminal reply, for a request that the peer gave up by itself, and
// for every call in flight when the connection ends, it is
// [tool.OutcomeUnknown]; [ErrNotSent] is in the chain when the
// request never went out.
func (c *Client) Do(ctx context.Context, r ClientRequest) (Reply, error) {
	id, call, err := c.start(ctx, r, false)
	if err != nil {
		return Reply{}, err
	}
	reply := Reply{Data: call.data}
	if call.in == nil {
		return reply, nil
	}
	defer c.forget(id)
	if reply.Body, err = call.in.collect(ctx); err != nil {
		if ctx.Err() != nil {
			c.cancelBody(id)
		}
		return Reply{}, ended(ctx, err)
	}
	return reply, nil
}

// Stream sends a request whose reply's body is read as it comes. Close ends it
// early; ctx covers the reading too.
func (c *Client) Stream(ctx context.Context, method string, data any) (size int64, body io.ReadCloser, err error) {
	id, call, err := c.start(ctx, ClientRequest{Method: method, Data: data}, true)
	if err != nil {
		return 0, nil, err
	}
	if call.in == nil {
		call.in = newInbox(0, true, nil)
	}
	return call.in.size, &bodyReader{c: c, ctx: ctx, id: id, in: call.in}, nil
}

// start sends a request and waits until its reply has come, or its end.
func (c *Client) start(ctx context.Context, r ClientRequest, stream bool) (string, *call, error) {
	if err := ctx.Err(); err != nil {
		return "", nil, ended(ctx, notSent{err})
	}
	if len(r.Body) > MaxBody {
		return "", nil, tool.Errorf(tool.InvalidParams, "%d bytes are more than one call can carry (%d)", len(r.Body), MaxBody)
	}
	id := strconv.FormatUint(c.lastID.Add(1), 10)
	call := &call{
		ctx: ctx, method: r.Method, stream: stream, prompt: r.Prompt && c.o.Blocks,
		maxBody: r.MaxBody, into: r.Into, done: make(chan struct{}),
	}
	if call.maxBody <= 0 {
		call.maxBody = MaxBody
	}
	if stream {
		call.maxBody = maxAnnounced
	}
	if len(r.Body) > 0 {
		call.out = newOutbox(c.writer, id, c.o.Token)
	}
	if err := c.register(id, call); err != nil {
		return "", nil, err
	}
	err := c.send(ctx, id, call, r)
	if err == nil {
		err = c.await(ctx, id, call)
	}
	if err != nil {
		c.forget(id)
		return "", nil, err
	}
	return id, call, nil
}

func (c *Client) register(id string, call *call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return lost(notSent{c.err})
	}
	c.calls[id] = call
	return nil
}

// send writes the request and its body. A body that is cut off because the
// reply came already, or because ctx ended, is no error here: await says more.
func (c *Client) send(ctx context.Context, id string, call *call, r ClientRequest) error {
	f := Frame{ID: id, Method: r.Method, Token: c.o.Token, Body: int64(len(r.Body))}
	err := c.writer.send(ctx, &f, r.Data, nil)
	switch {
	case err == nil:
	case errors.Is(err, errTooLong):
		return tool.Errorf(tool.InvalidParams, "the request is longer than the 16 MiB that one frame can carry: %w", err)
	case ctx.Err() != nil:
		return ended(ctx, err)
	default:
		c.failWrite(err)
		if errors.Is(err, ErrNotSent) {
			return lost(err)
		}
		return unknown(err)
	}
	if call.out == nil {
		return nil
	}
	err = call.out.sendBytes(ctx, call.done, r.Body)
	if err != nil && !errors.Is(err, errNotWanted) && ctx.Err() == nil {
		c.failWrite(err)
	}
	return nil
}

// failWrite ends the connection after a failed write, unless it was only that
// the data cannot be encoded. What the far end said last is a better reason than
// that it does not listen any more, so its end is read before.
func (c *Client) failWrite(err error) {
	if !c.writer.broken() {
		return
	}
	end := time.NewTimer(lastWords)
	defer end.Stop()
	select {
	case <-c.done:
	case <-end.C:
	}
	c.fail(fmt.Errorf("writing to the far end: %w", err))
}

// await waits for the reply, and after the end of ctx for the terminal reply to
// a cancelled request.
func (c *Client) await(ctx context.Context, id string, call *call) error {
	if call.prompt && c.takeTurn() {
		if gaveUp := c.readFor(ctx, id, call); !gaveUp {
			return c.unasked(ctx, call)
		}
	} else {
		select {
		case <-call.done:
			return c.unasked(ctx, call)
		case <-ctx.Done():
			c.giveUp(ctx, id, call)
		}
	}
	if call.err == nil {
		return nil
	}
	switch kind := tool.KindOf(call.err); kind {
	case tool.Internal, tool.Cancelled, tool.Timeout:
		return ended(ctx, call.err)
	default:
		return call.err
	}
}

// giveUp cancels a call whose ctx has ended and waits for its terminal reply; without
// one in time the connection ends.
func (c *Client) giveUp(ctx context.Context, id string, call *call) {
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.CancelGrace)
	defer cancel()
	if err := c.writer.send(grace, &Frame{ID: id, Method: methodCancel, Token: c.o.Token}, nil, nil); err != nil {
		c.failWrite(err)
	}
	select {
	case <-call.done:
	case <-grace.Done():
		c.fail(errNoReply)
		<-call.done
	}
}

// unasked is the error of a call that has its reply. When the peer says that it
// was cancelled, and nobody here did that, the peer itself is ending.
func (c *Client) unasked(ctx context.Context, call *call) error {
	c.mu.Lock()
	asked := call.quiesced || ctx.Err() != nil
	c.mu.Unlock()
	if asked || call.err == nil || tool.KindOf(call.err) != tool.Cancelled {
		return call.err
	}
	return &tool.Error{
		Kind: tool.OutcomeUnknown, Message: "the far end ended during the request, and how far that came is not known: " + call.err.Error(),
		Hint: "look before you repeat it", Err: call.err,
	}
}

// forget ends the interest in what else comes for a call.
func (c *Client) forget(id string) {
	c.mu.Lock()
	delete(c.calls, id)
	c.mu.Unlock()
}

// cancelBody tells the worker, as far as it can be told at once, that the rest
// of a body is not wanted.
func (c *Client) cancelBody(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), c.o.CancelGrace)
	defer cancel()
	err := c.writer.send(ctx, &Frame{ID: id, Method: methodCancel, Token: c.o.Token}, nil, nil)
	if err != nil {
		c.failWrite(err)
	}
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err is why the connection ended: nil while it has not, [io.EOF] when the peer
// closed it between frames.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
