package remote

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Host makes and reaches the environments of one backend. Its methods may be
// called concurrently for different bindings; remote calls them one at a time
// for the same one.
type Host interface {
	// Create makes the environment. When it fails nothing is left behind.
	Create(ctx context.Context, b backends.Binding, p backends.Progress) error
	// Attach makes sure that what was created is there and running. What is gone
	// is [tool.EnvironmentLost].
	Attach(ctx context.Context, b backends.Binding) error
	// Dial opens a stream to the environment's worker, which it starts when none
	// runs. An error that is [tool.EnvironmentLost], or any other that is not
	// Retryable, ends the attempt to connect; a Retryable one is tried again.
	Dial(ctx context.Context, b backends.Binding) (Stream, error)
	// Remove removes the environment and what it holds. What is gone is no error.
	Remove(ctx context.Context, b backends.Binding) error
}

// Stream is one connection to a worker. Close must make a blocked Read and
// Write return.
type Stream struct {
	io.ReadWriteCloser
	// Mark is what the far end prints, and a newline, before its first frame:
	// what precedes it is dropped. Empty: nothing is printed on purpose.
	Mark string
	// SharedDirectory is the host path of the directory in which the worker may
	// offer a socket; empty when there is none.
	SharedDirectory string
}

// Options are a backend's choices.
type Options struct {
	// Backend is the kind, for [backends.Info] and errors.
	Backend string
	// Root is the workspace inside the environment; empty means the profile's.
	Root string
	// RequireExistingWorkspace and RemoveWorkspaceOnExit go to the worker as they
	// are. On a reconnect an existing workspace is always required.
	RequireExistingWorkspace bool
	RemoveWorkspaceOnExit    bool
	// Foreign says that the peer is somebody else's program on a private stream,
	// which ends with the connection: a lost connection is then
	// [tool.EnvironmentLost] for good, and nothing is dialled again.
	Foreign bool
	// Required are capabilities without which the environment is of no use.
	Required []string
	// OnCallback answers nested calls of programs; nil refuses them.
	OnCallback func(ctx context.Context, call tool.Request) (tool.Result, error)
	// HandshakeTimeout bounds one initialize; 0 means [DefaultHandshakeTimeout].
	HandshakeTimeout time.Duration
	// ConnectBudget bounds all attempts of one connect together; 0 means
	// [DefaultConnectBudget].
	ConnectBudget time.Duration
	// CancelGrace is as in wire.ClientOptions.
	CancelGrace time.Duration
	// Log gets what nobody can be told; nil discards it.
	Log *slog.Logger
}

// Environment is one environment behind a Host.
type Environment struct{}

var (
	_ backends.Environment = (*Environment)(nil)
	_ backends.FileSystem  = (*Environment)(nil)
)

// Open creates the environment, or attaches to it when b is marked provisioned,
// connects to its worker, and returns it ready. When that fails after a
// creation, the environment is removed again.
func Open(ctx context.Context, h Host, b backends.Binding, p backends.Progress, o Options) (*Environment, error) {
	return nil, errors.ErrUnsupported
}

func (e *Environment) Info() backends.Info { return backends.Info{} }

func (e *Environment) Tools(ctx context.Context) ([]tool.Description, error) {
	return nil, errors.ErrUnsupported
}

func (e *Environment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	return tool.Result{}, errors.ErrUnsupported
}

func (e *Environment) Processes() backends.Processes { return nil }

func (e *Environment) Events() backends.Events { return nil }

func (e *Environment) Export(ctx context.Context, token string) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

func (e *Environment) Detach(ctx context.Context) error { return errors.ErrUnsupported }

func (e *Environment) Shutdown(ctx context.Context) error { return errors.ErrUnsupported }

func (e *Environment) Stat(ctx context.Context, path string) (backends.FileInfo, error) {
	return backends.FileInfo{}, errors.ErrUnsupported
}

func (e *Environment) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	return nil, errors.ErrUnsupported
}

func (e *Environment) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

func (e *Environment) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	return backends.FileInfo{}, errors.ErrUnsupported
}
