package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caisson-dev/caisson/backends/pace"
	"github.com/caisson-dev/caisson/backends/tool"
)

// ServerOptions are the choices of a Server.
type ServerOptions struct {
	// Token is shared by all connections of a worker; nil makes one for this
	// connection that is not required.
	Token *Token
	// MaxRequests and MaxPending bound what runs at once; 0 means
	// [DefaultMaxRequests] and [DefaultMaxPending]. Beyond them a request is
	// answered with [tool.Overloaded].
	MaxRequests int
	MaxPending  int64
	// Log gets what nobody can be told; nil discards it.
	Log *slog.Logger
}

// Server is the worker's end of one connection.
type Server struct {
	rw     io.ReadWriteCloser
	h      Handler
	o      ServerOptions
	reader *Reader
	writer *Writer

	lastCallback atomic.Uint64
	caps         atomic.Pointer[[]string] // what the host announced, once initialised

	flushGrace time.Duration

	ctx      context.Context // of every request
	ended    chan struct{}   // closed by end
	handlers sync.WaitGroup  // requests whose Handle has not returned
	replies  sync.WaitGroup  // requests whose reply is not written

	idle   chan *Request // to a goroutine that has nothing to do
	idlers atomic.Int32  // how many there are
	relief *pace.Relief
	paces  *pace.Memory
	blocks bool // reading blocks a thread

	mu        sync.Mutex
	requests  map[string]*Request
	pending   int64 // bytes of data and bodies of requests
	callbacks map[string]chan callbackAnswer
	state     state
	err       error // why the connection ended; set before ended is closed
	closing   bool

	outMu  sync.Mutex
	out    []any         // Frames and process events for the pump
	outHas chan struct{} // has an element when out grew
	// outTurn is held from taking what is in out until it is written, so that it
	// keeps its order.
	outTurn sync.Mutex
}

// state is how far a connection's handshake is.
type state int

const (
	stateNew state = iota
	stateInitializing
	stateReady
	stateFailed // by a failed initialize: the connection is of no more use
)

// NewServer makes the worker's end of rw. Nothing is read before Serve.
func NewServer(rw io.ReadWriteCloser, h Handler, o ServerOptions) *Server {
	if o.Token == nil {
		o.Token = NewToken(false)
	}
	if o.MaxRequests <= 0 {
		o.MaxRequests = DefaultMaxRequests
	}
	if o.MaxPending <= 0 {
		o.MaxPending = DefaultMaxPending
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		rw: rw, h: h, o: o,
		reader:    NewReader(rw),
		writer:    NewWriter(rw),
		ended:     make(chan struct{}),
		idle:      make(chan *Request),
		requests:  make(map[string]*Request),
		callbacks: make(map[string]chan callbackAnswer),
		outHas:    make(chan struct{}, 1),

		flushGrace: flushGrace,
		blocks:     Blocks(rw),
		relief:     pace.NewRelief(),
		paces:      pace.NewMemory(quickRequest),
	}
	return s
}

// Serve is NewServer and its Serve.
func Serve(ctx context.Context, rw io.ReadWriteCloser, h Handler, o ServerOptions) error {
	return NewServer(rw, h, o).Serve(ctx)
}

// flushGrace is how long the last replies may take to be written once every
// handler has ended: the host may have gone, or may not be reading.
const flushGrace = time.Second

// Serve reads and answers requests until the host closes the connection, the
// connection fails, its input is malformed, or ctx ends. It then cancels every
// request, waits for their handlers, closes rw, and returns nil after an end of
// file between frames, else why it ended. A read or write that cannot be
// interrupted does not hold it up. It must be called once only.
func (s *Server) Serve(ctx context.Context) error {
	requests, cancel := context.WithCancel(ctx)
	defer cancel()
	s.ctx = requests
	stop := context.AfterFunc(ctx, func() { s.end(context.Cause(ctx)) })
	defer stop()
	go s.readOn()
	go s.relief.Watch(s.ended, s.relieve)
	var pump sync.WaitGroup
	pump.Go(s.pump)

	<-s.ended
	s.mu.Lock()
	s.closing = true // no request begins any more
	s.mu.Unlock()
	cancel()
	s.handlers.Wait()
	flushed := make(chan struct{})
	go func() {
		defer close(flushed)
		s.replies.Wait()
		pump.Wait()
	}()
	grace := time.NewTimer(s.flushGrace)
	defer grace.Stop()
	if !s.writer.broken() {
		select {
		case <-flushed:
		case <-grace.C:
		}
	}
	closeErr := s.rw.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(s.err, io.EOF) {
		return closeErr
	}
	return s.err
}

// end begins the end of the connection; the first reason counts.
func (s *Server) end(reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = reason
		close(s.ended)
	}
}

// checkWrite ends the connection when it cannot be written to any more.
func (s *Server) checkWrite() {
	if s.writer.broken() {
		s.end(errWrite)
	}
}

var (
	errWrite  = errors.New("writing to the host failed")
	errPileUp = errors.New("the host does not read")
)

// Emit sends a process event. It never blocks: a host that lets too many pile up
// loses the connection, and learns the rest from process/list. Events before
// initialize succeeded are dropped for the same reason.
func (s *Server) Emit(e tool.ProcessEvent) {
	if s.caps.Load() != nil {
		s.post(e)
	}
}

// post has a frame or an event written without waiting for it.
func (s *Server) post(item any) {
	s.outMu.Lock()
	full := len(s.out) >= maxEvents
	if !full {
		s.out = append(s.out, item)
	}
	s.outMu.Unlock()
	if full {
		s.end(errPileUp)
		return
	}
	wake(s.outHas)
}

// pump writes what was posted, until the connection ends and nothing is left.
func (s *Server) pump() {
	for {
		if s.writePosted() {
			continue
		}
		select {
		case <-s.outHas:
		case <-s.ended:
			s.outMu.Lock()
			left := len(s.out)
			s.outMu.Unlock()
			if left == 0 {
				return
			}
		}
	}
}

// writePosted writes what was posted, and reports whether there was something.
func (s *Server) writePosted() bool {
	s.outTurn.Lock()
	defer s.outTurn.Unlock()
	items := s.posted()
	for _, item := range items {
		f, data := postedFrame(item)
		if err := s.writer.send(context.Background(), &f, data, nil); err != nil {
			s.notSent(f, err)
		}
	}
	return len(items) > 0
}

// posted takes what was posted. The caller holds outTurn.
func (s *Server) posted() []any {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	items := s.out
	s.out = nil
	return items
}

// postedFrame is the frame of what was posted, and its data.
func postedFrame(item any) (f Frame, data any) {
	if f, isFrame := item.(Frame); isFrame {
		return f, nil
	}
	return Frame{Method: methodProcess}, item
}

func (s *Server) notSent(f Frame, err error) {
	s.checkWrite()
	s.o.Log.Warn("a frame was not sent", "method", f.Method, "error", err)
}

// sendReply writes a reply without a body, and before it, in one go, what was
// posted: mostly the event that tells what the request did, for which the host
// then wakes up once.
func (s *Server) sendReply(f *Frame, data any) error {
	if !s.outTurn.TryLock() {
		return s.writer.send(context.Background(), f, data, nil)
	}
	defer s.outTurn.Unlock()
	items := s.posted()
	if len(items) == 0 {
		return s.writer.send(context.Background(), f, data, nil)
	}
	var lines []byte
	for _, item := range items {
		f, data := postedFrame(item)
		line, err := appendFrame(nil, &f, data)
		if err != nil {
			s.notSent(f, err)
			continue
		}
		lines = append(lines, line...)
	}
	line, unencoded := appendFrame(nil, f, data)
	if unencoded == nil {
		lines = append(lines, line...)
	}
	if err := s.writer.sendLine(context.Background(), lines, nil); err != nil {
		return err
	}
	if unencoded != nil {
		return notSent{unencoded}
	}
	return nil
}

// hostHas reports whether the host announced the capability.
func (s *Server) hostHas(capability string) bool {
	caps := s.caps.Load()
	return caps != nil && slices.Contains(*caps, capability)
}

// run handles one request and replies.
func (s *Server) run(r *Request) {
	defer s.replies.Done()
	resp, err := s.handle(r)
	if r.begin != nil {
		s.initialized(r, err)
	}
	s.reply(r, resp, err)
	if resp.Done != nil {
		resp.Done()
	}
	r.cancel()
}

// handle waits for the request's body and has the request handled.
func (s *Server) handle(r *Request) (resp Response, err error) {
	defer s.handlers.Done()
	if r.in != nil {
		if r.Body, err = r.in.collect(r.ctx); err != nil {
			return resp, err
		}
	}
	defer func() {
		if p := recover(); p != nil {
			s.o.Log.Error("a handler panicked", "method", r.Method, "panic", p, "stack", string(debug.Stack()))
			err = tool.Errorf(tool.Internal, "%s failed for a reason inside the worker", r.Method)
		}
	}()
	if r.kind == nil {
		return s.h.Handle(r.ctx, r)
	}
	begun := time.Now()
	resp, err = s.h.Handle(r.ctx, r)
	r.kind.Took(time.Since(begun))
	return resp, err
}

// reply sends the terminal reply and its body, if it has one.
func (s *Server) reply(r *Request, resp Response, err error) {
	if resp.Stream != nil {
		defer func() {
			if err := resp.Stream.Close(); err != nil {
				s.o.Log.Warn("closing a stream", "method", r.Method, "error", err)
			}
		}()
	}
	size := resp.Size
	if resp.Stream == nil {
		size = int64(len(resp.Body))
	}
	if err == nil && size > 0 && !r.HostHas(CapBulk) {
		err = fmt.Errorf("wire: %s answered with a body that this host cannot take", r.Method)
	}
	f := Frame{ID: r.ID}
	if err != nil {
		f, resp, size = errorFrame(r.ID, err, r.HostHas(CapErrors)), Response{}, 0
	}
	f.Body = size
	s.settle(r, size > 0)
	if size == 0 {
		if err := s.sendReply(&f, resp.Data); err != nil {
			s.unsent(r, err)
		}
		return
	}
	if err := s.writer.send(context.Background(), &f, resp.Data, nil); err != nil {
		s.unsent(r, err)
		return
	}
	defer s.forget(r)
	if resp.Stream != nil {
		err = r.out.sendStream(r.ctx, resp.Stream, size)
	} else {
		err = r.out.sendBytes(r.ctx, nil, resp.Body)
	}
	if err != nil && !s.writer.broken() {
		err = r.out.abort(context.Background(), err, r.HostHas(CapErrors))
	}
	if err != nil {
		s.checkWrite()
	}
}

// unsent replies to a request whose reply could not be sent.
func (s *Server) unsent(r *Request, err error) {
	s.forget(r)
	if s.writer.broken() {
		s.checkWrite()
		return
	}
	if errors.Is(err, errTooLong) {
		err = tool.Errorf(tool.Internal, "the reply to %s is longer than one frame can be", r.Method).
			WithHint("ask for less at once")
	}
	f := errorFrame(r.ID, err, r.HostHas(CapErrors))
	if s.writer.send(context.Background(), &f, nil, nil) != nil {
		s.checkWrite()
	}
}

// settle ends a request's life but for a body that its reply still has: its id
// is free again before the host can know of the reply.
func (s *Server) settle(r *Request, body bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending -= r.size
	if body {
		r.out = newOutbox(s.writer, r.ID, "")
		return
	}
	delete(s.requests, r.ID)
}

func (s *Server) forget(r *Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests[r.ID] == r {
		delete(s.requests, r.ID)
	}
}
