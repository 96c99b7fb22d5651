package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ErrNotSent is in the chain of an error when the request provably never
// reached the peer in whole, so that sending it over another connection is no
// replay.
var ErrNotSent = errors.New("the request was not sent")

// ClientOptions are the choices of a Client.
type ClientOptions struct {
	// Token goes out with every frame; empty sends none.
	Token string
	// Mark is what the peer prints, and a newline, before its first frame. What
	// precedes it is dropped. Without a mark lines are dropped until the first
	// that is a frame. In both cases [MaxBanner] bytes are the limit.
	Mark string
	// OnEvent gets process events in order, on the reading goroutine: it must
	// not block. Nil drops them.
	OnEvent func(tool.ProcessEvent)
	// OnCallback answers nested calls, each on a goroutine of its own. Its
	// context ends with the run_code call that it belongs to. Nil refuses them.
	OnCallback func(ctx context.Context, parent string, call ToolCall) (tool.Result, error)
	// CancelGrace is how long a cancelled call waits for its terminal reply; 0
	// means [DefaultCancelGrace].
	CancelGrace time.Duration
	// Log gets what nobody can be told; nil discards it.
	Log *slog.Logger
}

// Client is the host's end of one connection. Its methods may be called
// concurrently.
type Client struct{}

// NewClient makes the host's end of rw and starts to read.
func NewClient(rw io.ReadWriteCloser, o ClientOptions) *Client { return &Client{} }

// Initialize sends initialize and checks the reply. Version and Capabilities are
// filled in. After a failure the connection is of no more use and closed.
func (c *Client) Initialize(ctx context.Context, in Initialize) (Initialized, error) {
	return Initialized{}, errors.ErrUnsupported
}

// Has reports whether the worker announced the capability.
func (c *Client) Has(capability string) bool { return false }

// Reply is what a call came back with.
type Reply struct {
	// Data is valid JSON, or nil.
	Data json.RawMessage
	// Body is what came beside the frame; nil when nothing did.
	Body []byte
}

// Decode decodes the data into v. Data that does not fit is an
// [tool.Internal] error that names the method.
func (r Reply) Decode(v any) error { return errors.ErrUnsupported }

// Call sends a request, with a body where one is given and the worker has
// [CapBulk], and waits for its reply.
//
// When ctx ends it cancels the request and still waits, for at most the
// cancel grace, for the terminal reply: a reply that came first is returned,
// otherwise the error is [tool.Cancelled] or, after a deadline, [tool.Timeout].
// Without a terminal reply, and for every call in flight when the connection
// ends, it is [tool.OutcomeUnknown]; [ErrNotSent] is in the chain when the
// request never went out.
func (c *Client) Call(ctx context.Context, method string, data any, body []byte) (Reply, error) {
	return Reply{}, errors.ErrUnsupported
}

// Stream sends a request whose reply's body is read as it comes. Close ends it
// early; ctx covers the reading too.
func (c *Client) Stream(ctx context.Context, method string, data any) (size int64, body io.ReadCloser, err error) {
	return 0, nil, errors.ErrUnsupported
}

// Done is closed when the connection has ended.
func (c *Client) Done() <-chan struct{} { return nil }

// Err is why the connection ended: nil while it has not, [io.EOF] when the peer
// closed it between frames.
func (c *Client) Err() error { return nil }

// Close ends the connection, fails every call in flight, and waits for
// callbacks to end.
func (c *Client) Close() error { return nil }
