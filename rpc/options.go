package rpc

import (
	"context"
	"io"
	"log/slog"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/session"
)

// Exit codes of the service.
const (
	// ExitOK follows shutdown and exit, and a signal.
	ExitOK = 0
	// ExitUnclean follows an exit, or the end of the input, without shutdown.
	ExitUnclean = 1
	// ExitProtocol follows input that is not of this protocol.
	ExitProtocol = 2
)

// Options is what one connection is served with.
type Options struct {
	// In carries the client's messages. Closing it must end a blocked Read, or
	// the process must end soon after Serve returns.
	In io.ReadCloser
	// Out carries ours, and nothing else may write to it.
	Out io.WriteCloser
	// Log receives what the service has to say; records of level Info and above
	// go to the client too. Nil discards.
	Log *slog.Logger
	// Version is this build's, for serverInfo.
	Version string
	// Open makes what the connection works with, when the client initializes.
	// It must be quick: the client waits for it.
	Open func(ctx context.Context, o OpenOptions) (Services, error)
}

// OpenOptions is what a client chose at initialize, and what the services
// report to.
type OpenOptions struct {
	// ConfigPath, StateDir and DataDir are absolute paths; "" means the default.
	ConfigPath string
	StateDir   string
	DataDir    string
	// Sink is told what happens in the sessions.
	Sink session.Sink
	// Log reaches the client as well as [Options.Log].
	Log *slog.Logger
}

// Services are what a connection works with. Serve shuts the sessions down,
// closes the artifacts and calls Close, in this order, at its end.
type Services struct {
	Sessions  *session.Manager
	Artifacts *artifacts.Store
	// Backends are the kinds that this build has, sorted.
	Backends []string
	// ProcessTTY says that processes can have terminals.
	ProcessTTY bool
	// ConfigPath is the user's configuration file, which need not be there.
	ConfigPath string
	// Close ends what the sessions worked through; nil for nothing.
	Close func() error
}
