package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/pace"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// phase is where a connection is in its life.
type phase int

const (
	fresh        phase = iota // only initialize is answered
	initializing              // initialize is being worked on
	running
	shutDown // after shutdown: only exit
	ended    // nothing is answered any more
)

// errEnding is the cause that cancels requests when the connection ends. It has its
// kind for whoever returns the cause of a context as it is.
var errEnding error = tool.Errorf(tool.Cancelled, "the service is shutting down")

// server serves one connection.
type server struct {
	o       Options
	log     *slog.Logger // to o.Log and the client
	stream  *frame.Stream
	methods map[string]method
	paces   *pace.Memory
	relief  *pace.Relief
	// readOn is taken from by goroutines that may read on, which spare counts.
	readOn chan struct{}
	spare  atomic.Int32
	room   room
	// scratches are buffers for answers that the stream copies, *[]byte each.
	scratches sync.Pool
	asks      asks
	offers    offers
	// grace is cancelGrace and flushing flushBudget, but in tests.
	grace, flushing time.Duration

	// ctx is over when the connection ends; requests derive from it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	// work counts goroutines that work on requests or for subscriptions.
	work sync.WaitGroup
	// endings holds the first reason to end.
	endings chan ending
	// written is closed when the last answer has been written, or never will be.
	written chan struct{}
	// unread is closed when nobody reads any more.
	unread chan struct{}
	// worked is work.Done.
	worked func()

	shutdownOnce sync.Once

	mu            sync.Mutex
	phase         phase
	greeted       bool // it was running once, so that notifications may be sent to the end
	client        protocol.ClientCapabilities
	services      Services
	trace         protocol.TraceValue
	requests      map[jsonrpc2.ID]*request
	working       int // requests that hold a slot
	waiting       int // requests that hold none
	subscriptions map[processKey]*subscription
	// chunks are what subscriptions read into.
	chunks sync.Pool
}

// ending is why the connection ends, and the process's exit code.
type ending struct {
	code int
	err  error
}

func newServer(o Options) *server {
	s := &server{
		o:             o,
		methods:       methods(),
		grace:         cancelGrace,
		flushing:      flushBudget,
		endings:       make(chan ending, 1),
		written:       make(chan struct{}),
		unread:        make(chan struct{}),
		readOn:        make(chan struct{}),
		trace:         protocol.TraceOff,
		requests:      map[jsonrpc2.ID]*request{},
		subscriptions: map[processKey]*subscription{},
		chunks:        sync.Pool{New: func() any { return new([outputChunk]byte) }},
		paces:         pace.NewMemory(quickRequest),
		relief:        pace.NewRelief(),
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	local := slog.DiscardHandler
	if o.Log != nil {
		local = o.Log.Handler()
	}
	s.log = slog.New(&clientLog{local: local, send: s.logMessage})
	s.stream = frame.New(o.In, o.Out, frame.Options{
		Invalid:  s.invalidFrame,
		ReadEnd:  s.readEnded,
		WriteEnd: func(err error) { s.end(ExitUnclean, err) },
	})
	s.worked = s.work.Done
	s.asks.init()
	return s
}

// Serve serves one client until it exits, its streams end, its process dies or
// ctx is done (a signal). It then ends within [shutdownBudget]: requests are
// cancelled, environments detached, never removed. The error says why the
// connection ended when that is worth a line in the log; the exit code is one
// of [ExitOK], [ExitUnclean] and [ExitProtocol].
func Serve(ctx context.Context, o Options) (exitCode int, err error) {
	return newServer(o).serve(ctx)
}

func (s *server) serve(ctx context.Context) (int, error) {
	go s.read()
	s.work.Go(func() {
		s.relief.Watch(s.ctx.Done(), func() {
			s.stream.Detach()
			s.relieve()
		})
	})
	var e ending
	select {
	case e = <-s.endings:
	case <-ctx.Done():
		e = ending{code: ExitOK}
	}
	return e.code, errors.Join(e.err, s.close())
}

// end makes the connection end with this code, unless it is ending already.
func (s *server) end(code int, err error) {
	select {
	case s.endings <- ending{code: code, err: err}:
	default:
	}
}

// invalidFrame answers what is no message and reads on.
func (s *server) invalidFrame(p frame.Problem, id jsonrpc2.ID) error {
	code := jsonrpc2.InvalidRequest
	switch p {
	case frame.NotJSON:
		code = jsonrpc2.ParseError
	case frame.NotText:
		code = jsonrpc2.InvalidParams
	}
	return s.stream.Respond(id, protocolError(protocol.Code(code), "%s", p))
}

// readEnded is told of the end of the input, on the reading goroutine. It holds
// that until the last answer has been written: a connection whose input has
// ended takes none.
func (s *server) readEnded(err error) {
	defer func() { <-s.written }()
	s.mu.Lock()
	clean := s.phase == shutDown
	s.mu.Unlock()
	switch {
	case errors.Is(err, frame.ErrHeader):
		s.end(ExitProtocol, err)
	case clean:
		s.end(ExitOK, nil)
	case errors.Is(err, io.EOF):
		s.end(ExitUnclean, errors.New("the client's output ended without shutdown"))
	default:
		s.end(ExitUnclean, err)
	}
}

// close ends everything within [shutdownBudget], in the order that lets each
// step do its work: requests are cancelled, the environments detached, what
// was answered is written, then the streams are closed.
func (s *server) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownBudget)
	defer cancel()

	s.mu.Lock()
	s.phase = ended
	s.mu.Unlock()
	s.cancel(errEnding)

	err := s.shutdownSessions(ctx)
	if backends.Await(ctx, &s.work) == nil {
		// An initialize that was still opening them has done so by now.
		err = errors.Join(err, s.shutdownSessions(ctx))
	} else {
		err = errors.Join(err, errors.New("some requests did not stop in time"))
	}

	flush, cancelFlush := context.WithTimeout(context.Background(), s.flushing)
	defer cancelFlush()
	// A client that does not read, or is gone, is no fault at the end.
	_ = s.stream.Flush(flush)
	_ = s.stream.Close()
	close(s.written)
	select {
	case <-s.unread:
	case <-flush.Done(): // a read that Close cannot end ends with the process
	}
	s.mu.Lock()
	services := s.services
	s.mu.Unlock()
	if services.Artifacts != nil {
		err = errors.Join(err, services.Artifacts.Close())
	}
	if services.Close != nil {
		err = errors.Join(err, services.Close())
	}
	return err
}

// shutdownSessions detaches from every environment, once.
func (s *server) shutdownSessions(ctx context.Context) (err error) {
	s.mu.Lock()
	sessions := s.services.Sessions
	s.mu.Unlock()
	if sessions != nil {
		s.shutdownOnce.Do(func() { err = sessions.Shutdown(ctx) })
	}
	return err
}
