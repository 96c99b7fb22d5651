package connection

import (
	"context"
	"io"

	"github.com/pkg/sftp"

	"github.com/caisson-dev/caisson/backends"
)

// Pool shares connections: whoever wants the same route gets the same one. All
// its methods may be called at once.
type Pool struct{}

// NewPool returns a pool without connections. It must be closed.
func NewPool(o Options) *Pool { return nil }

// Resolve finds out how d is reached. It starts `ssh -G` and connects to
// nothing. Errors are *tool.Error: configInvalid for what cannot be followed,
// backendUnavailable for a missing program.
func (p *Pool) Resolve(ctx context.Context, d Destination) (*Route, error) { return nil, nil }

// Dial returns a connection over r: a reference to the one that is open, or a
// new one. Errors are *tool.Error of kind backendUnavailable (Retryable unless
// they are about keys or authentication), configInvalid, or cancelled. The
// connection must be closed.
func (p *Pool) Dial(ctx context.Context, r *Route, progress backends.Progress) (*Conn, error) {
	return nil, nil
}

// Close ends all connections, referred to or not, and waits for all that
// belongs to them.
func (p *Pool) Close() error { return nil }

// Route is how a destination is reached. It does not change. It names files
// that are read anew at each dial.
type Route struct{}

// Key is equal for routes that may share a connection.
func (r *Route) Key() string { return "" }

// String is user@host:port, and over which hosts, for a person.
func (r *Route) String() string { return "" }

// User is the account on the machine.
func (r *Route) User() string { return "" }

// Conn is a reference to a connection to a machine. Its methods may be called
// at once. A machine that lets no further session run on a shared connection
// gives this reference one of its own without being asked.
type Conn struct{}

// Exec starts a command through the account's shell. It has no terminal. The
// context bounds the start and nothing afterwards. command is one line for the
// remote shell: see [Quote].
func (c *Conn) Exec(ctx context.Context, command string) (*Stream, error) { return nil, nil }

// Run runs a command and waits for its end. stdin may be nil. More than
// [MaxStdout] bytes of output are an error. A command that exits non-zero is no
// error. When ctx ends first the command is told so by signal and left alone.
func (c *Conn) Run(ctx context.Context, command string, stdin io.Reader) (Result, error) {
	return Result{}, nil
}

// SFTP starts the SFTP subsystem. The client must be closed.
func (c *Conn) SFTP(ctx context.Context) (*sftp.Client, error) { return nil, nil }

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return nil }

// Err says why it has ended; nil before that.
func (c *Conn) Err() error { return nil }

// Close gives the reference back. The streams that were started with it end.
func (c *Conn) Close() error { return nil }

// Stream is a remote command that runs: Read is its standard output, Write its
// standard input. Close, and the end of the connection, make a blocked Read and
// Write return at once.
type Stream struct{}

// Read reads standard output. io.EOF is the end of the output; a connection
// that ended is an error that says so.
func (s *Stream) Read(p []byte) (int, error) { return 0, nil }

// Write writes standard input.
func (s *Stream) Write(p []byte) (int, error) { return 0, nil }

// CloseWrite ends standard input.
func (s *Stream) CloseWrite() error { return nil }

// Stderr is the tail of standard error so far, at most [MaxStderr] bytes, as it
// came.
func (s *Stream) Stderr() string { return "" }

// Signal sends a signal, named without SIG. Not every server delivers it.
func (s *Stream) Signal(name string) error { return nil }

// Wait waits for the end of the command, whose output must be read meanwhile.
func (s *Stream) Wait(ctx context.Context) (Exit, error) { return Exit{}, nil }

// Close ends the stream; a command that still runs is not ended by it.
func (s *Stream) Close() error { return nil }

// Quote returns words as one line that a POSIX shell reads as those words.
func Quote(words ...string) string { return "" }

const (
	// MaxStderr is how many bytes of a command's standard error are kept.
	MaxStderr = 8 << 10
	// MaxStdout is how many bytes of output Run collects.
	MaxStdout = 1 << 20
)
