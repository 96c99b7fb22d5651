package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Handler does what requests ask for. Handle is called once a request, on a
// goroutine of its own, initialize included; ctx ends when the request is
// cancelled or the connection ends, and the terminal reply is sent when Handle
// returns and not before.
//
// An error becomes the reply's error; a [tool.Error] keeps its kind where the
// host understands that. A method that the handler does not know is
// [UnknownMethod].
type Handler interface {
	Handle(ctx context.Context, r *Request) (Response, error)
}

// HandlerFunc is a function that is a Handler.
type HandlerFunc func(ctx context.Context, r *Request) (Response, error)

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) (Response, error) { return f(ctx, r) }

// UnknownMethod is the error for a method that a handler does not know.
func UnknownMethod(method string) error {
	return tool.Errorf(tool.Unsupported, "unknown method %q", method)
}

// Request is one request of the host. It must not be used after Handle has
// returned.
type Request struct {
	ID     string
	Method string
	// Data is valid JSON, or nil when the frame had none.
	Data json.RawMessage
	// Body is what was sent beside the frame, complete; nil when nothing was.
	Body []byte

	server *Server
}

// Decode decodes the data into v, strictly for its types and leniently for
// unknown members. Its error is [tool.InvalidParams].
func (r *Request) Decode(v any) error { return errors.ErrUnsupported }

// HostHas reports whether the host announced the capability at initialize.
// Only then may a Response have a body ([CapBulk]).
func (r *Request) HostHas(capability string) bool { return false }

// Callback calls a tool of the host from inside run_code and returns its
// result. It fails when the request is not run_code, when ctx ends, when the
// host answers with an error, and when the connection ends.
func (r *Request) Callback(ctx context.Context, call ToolCall) (tool.Result, error) {
	return tool.Result{}, errors.ErrUnsupported
}

// Response is what a handler answers. At most one of Body and Stream is set.
type Response struct {
	// Data is encoded as JSON; a json.RawMessage goes out as it is. Nil is null.
	Data any
	// Body goes beside the frame.
	Body []byte
	// Stream is read for exactly Size bytes, which go beside the frame without
	// ever being in memory whole. It is closed in every case.
	Stream io.ReadCloser
	Size   int64
}

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
type Server struct{}

// NewServer makes the worker's end of rw. Nothing is read before Serve.
func NewServer(rw io.ReadWriteCloser, h Handler, o ServerOptions) *Server { return &Server{} }

// Serve reads and answers requests until the host closes the connection, the
// connection fails, its input is malformed, or ctx ends. It then cancels every
// request, waits for their handlers, closes rw, and returns nil after an end of
// file between frames, else why it ended. A read that cannot be interrupted
// does not hold it up.
func (s *Server) Serve(ctx context.Context) error { return errors.ErrUnsupported }

// Emit sends a process event. It never blocks: a host that lets too many pile up
// loses the connection, and learns the rest from process/list. Events before
// initialize succeeded are dropped for the same reason.
func (s *Server) Emit(e tool.ProcessEvent) {}

// Serve is NewServer and its Serve.
func Serve(ctx context.Context, rw io.ReadWriteCloser, h Handler, o ServerOptions) error {
	return NewServer(rw, h, o).Serve(ctx)
}

// Token is the secret of a worker's connections: the first initialize fixes it,
// every later frame of every connection must carry it.
type Token struct{}

// NewToken makes a token that is not fixed yet. When required, as on a socket,
// initialize is refused without a token of at least [MinToken] characters.
func NewToken(required bool) *Token { return &Token{} }

// AnswerSocket is the worker's part of the proof on a shared socket: it reads
// the host's challenge and answers it with the nonce of the offer. Call it after
// the peer was checked and before Serve. It fails when ctx ends.
func AnswerSocket(ctx context.Context, conn io.ReadWriteCloser, nonce string) error {
	return errors.ErrUnsupported
}

// CheckSocket is the host's part: it fails unless the peer knows the nonce.
func CheckSocket(ctx context.Context, conn io.ReadWriteCloser, nonce string) error {
	return errors.ErrUnsupported
}
