// Package command is the backend of environments that somebody else's program
// serves: an adapter, which speaks the worker protocol on its standard input and
// output. It is started with the user's rights and trusted; what it does with a
// session is its own affair, and nothing is ever answered in its place.
//
// One adapter process serves one session and lives as long as the connection to
// it. When it dies, calls in flight have an unknown outcome, and the next call
// starts it anew with the same binding and the demand that its workspace exists.
// When the session is let go of it ends, and the environment with it: a session of
// an earlier service has lost its own.
//
// What travels over the connection is not known here; see package remote.
package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Options are the backend's choices.
type Options struct {
	// Tools describes the protocol's workspace tools, for adapters that cannot list
	// what they have.
	Tools []tool.Description
	// HandshakeTimeout bounds one initialize; 0 means [DefaultHandshakeTimeout].
	HandshakeTimeout time.Duration
	// Log gets what a person may want to know; nil drops it.
	Log *slog.Logger
}

// Backend starts adapters.
type Backend struct{ o Options }

var _ backends.Backend = (*Backend)(nil)

// New makes the backend. It starts nothing.
func New(o Options) *Backend {
	if o.HandshakeTimeout <= 0 {
		o.HandshakeTimeout = DefaultHandshakeTimeout
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Backend{o: o}
}

// Kind is "command".
func (*Backend) Kind() string { return profile.Command }

// Open starts the adapter of a new environment. A provisioned one ended with the
// connection that it had, and is lost.
func (b *Backend) Open(ctx context.Context, binding backends.Binding, p backends.Progress) (backends.Environment, error) {
	h := newHost(b, binding)
	e, err := remote.Open(ctx, h, binding, p, remote.Options{
		Backend:          b.Kind(),
		Tools:            b.o.Tools,
		HandshakeTimeout: b.o.HandshakeTimeout,
		ConnectBudget:    b.o.HandshakeTimeout + connectSlack,
		OneAttempt:       true, // what a program did once it does again
		Log:              b.o.Log,
	})
	if err != nil {
		return nil, err
	}
	return &environment{Environment: e, host: h}, nil
}

// environment is the session's, with the end of its adapter.
type environment struct {
	*remote.Environment
	host *host
}

var (
	_ backends.FileSystem = (*environment)(nil)
	_ backends.CodeRunner = (*environment)(nil)
)

// Shutdown ends the adapter in order, within the profile's shutdown timeout. An
// adapter that has to be killed, or says by its exit code that it could not end
// in order, may have left something behind, which the error says.
func (e *environment) Shutdown(ctx context.Context) error {
	err, end := e.Environment.Shutdown(ctx), e.host.end(ctx)
	if end != nil && tool.KindOf(err) == tool.Timeout {
		return end // what it waited for in vain
	}
	return joined(err, end)
}

// Detach ends the adapter as Shutdown does: it lives no longer than its
// connection. It does not wait for longer than ctx; an adapter that takes longer
// has the end of its input and goes on by itself.
func (e *environment) Detach(ctx context.Context) error {
	detached := make(chan error, 1)
	go func() { detached <- e.Environment.Detach(context.WithoutCancel(ctx)) }()
	select {
	case err := <-detached:
		return joined(err, e.host.end(ctx))
	case <-ctx.Done():
		return tool.Errorf(tool.Timeout, "the adapter %s has not ended yet", e.host.name())
	}
}

// joined is both errors, or the one that they have in common.
func joined(a, b error) error {
	if a != nil && b != nil && errors.Is(a, b) {
		return a
	}
	return errors.Join(a, b)
}

// Remove has nothing to remove: the adapter and what it made ended with its
// connection. The workspace stays, since only the adapter knows whose it is.
func (*Backend) Remove(context.Context, backends.Binding) error { return nil }

// Prune finds nothing: no adapter outlives its connection.
func (*Backend) Prune(context.Context, backends.PruneOptions) ([]backends.Resource, error) {
	return nil, nil
}
