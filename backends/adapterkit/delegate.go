package adapterkit

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// DelegateOptions name the peer that a [Delegated] forwards to. Exactly one of
// Command and the three of Input, Output and Close is set.
type DelegateOptions struct {
	// Command is the program to start, as an argument list; the first is a path
	// or is looked up in PATH. Nothing is searched for or tried in its place.
	Command []string
	// Input is what the peer reads and Output what it writes: a connection that
	// is there already. Close ends both.
	Input  io.Writer
	Output io.Reader
	Close  func() error
	// Capabilities are those without which the peer is refused.
	Capabilities []string
	// Env is the environment of Command, as in [os/exec.Cmd]; nil means the
	// adapter's.
	Env []string
	// ShutdownGrace is how long Command may take to exit when its input has
	// ended, from 1 ms to 2147483647 ms; 0 means [DefaultShutdownGrace]. Only with
	// Command.
	ShutdownGrace time.Duration
}

// Limits of a delegated peer.
const (
	// DefaultShutdownGrace is the protocol's budget for the exit of a delegated
	// peer. It must be within the budget of the adapter.
	DefaultShutdownGrace = 10 * time.Second
	// maxShutdownGrace is the protocol's limit, 2147483647 ms.
	maxShutdownGrace = 2147483647 * time.Millisecond
)

// Delegated is a Backend that forwards every request, unchanged, to one peer. It
// starts it at initialize with the identical, full binding, checks its version,
// its root and the capabilities that are required, and passes on its replies,
// errors, events and callbacks. It does not search, retry or replace: a peer that
// fails is closed at once, and the session with it ([Session.Fail]).
//
// A request that is cancelled is cancelled at the peer, which has 35 s to end it;
// then it has failed.
//
// To do something about requests on their way, embed a Delegated and override
// Handle.
type Delegated struct {
	o DelegateOptions

	mu   sync.Mutex
	peer *peer // nil until initialize
}

var _ Backend = (*Delegated)(nil)

// Delegate makes a Delegated. It starts nothing; its error is about the options.
func Delegate(o DelegateOptions) (*Delegated, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.ShutdownGrace == 0 {
		o.ShutdownGrace = DefaultShutdownGrace
	}
	return &Delegated{o: o}, nil
}

func (o DelegateOptions) check() error {
	streams := o.Input != nil || o.Output != nil || o.Close != nil
	switch {
	case (len(o.Command) > 0) == streams:
		return errors.New("adapterkit: delegate to either a Command or an Input, an Output and a Close")
	case streams && (o.Input == nil || o.Output == nil || o.Close == nil):
		return errors.New("adapterkit: a connection needs Input, Output and Close")
	case streams && (o.Env != nil || o.ShutdownGrace != 0):
		return errors.New("adapterkit: Env and ShutdownGrace belong to a Command")
	case !streams && o.Command[0] == "":
		return errors.New("adapterkit: the Command names no program")
	case o.ShutdownGrace != 0 && (o.ShutdownGrace < time.Millisecond || o.ShutdownGrace > maxShutdownGrace):
		return errors.New("adapterkit: ShutdownGrace must be from 1 ms to 2147483647 ms")
	}
	return nil
}

// Initialize starts the peer and hands the binding on.
func (d *Delegated) Initialize(ctx context.Context, s *Session, _ wire.Initialize) (wire.Initialized, error) {
	p, err := d.connect(s)
	if err != nil {
		return wire.Initialized{}, err
	}
	d.mu.Lock()
	d.peer = p
	d.mu.Unlock()
	out, err := p.initialize(ctx, s.raw, d.o.Capabilities)
	if err != nil {
		return wire.Initialized{}, errors.Join(err, p.close())
	}
	p.watch(s)
	return out, nil
}

// Handle forwards a request.
func (d *Delegated) Handle(ctx context.Context, r *Request) (wire.Response, error) {
	d.mu.Lock()
	p := d.peer
	d.mu.Unlock()
	if p == nil {
		return wire.Response{}, tool.Errorf(tool.Internal, "%s came before the peer was started", r.Method)
	}
	return p.forward(ctx, r)
}

// Close ends the peer's input and waits for its exit, for at most the shutdown
// grace; then it is killed, and the error says that something may be left.
func (d *Delegated) Close(context.Context) error {
	d.mu.Lock()
	p := d.peer
	d.mu.Unlock()
	if p == nil {
		return nil
	}
	return p.close()
}
