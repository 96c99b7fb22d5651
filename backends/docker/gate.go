package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// gate lets requests through to a daemon until it is closed. Connections that
// requests were using at that moment are closed as these end: the library would
// keep them for a later request, which never comes.
type gate struct {
	inner  http.RoundTripper
	idle   func() // closes the connections that no request uses
	closed atomic.Bool
}

// RoundTrip makes the request, unless the gate is closed.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.closed.Load() {
		return nil, net.ErrClosed
	}
	response, err := g.inner.RoundTrip(r)
	if err != nil {
		g.ended()
		return nil, ofContext(r.Context(), err)
	}
	response.Body = &gatedBody{ReadCloser: response.Body, ended: sync.OnceFunc(g.ended)}
	return response, nil
}

// ofContext is err, or when ctx is over that: net/http returns the cause of the
// end as it is, which whoever asks takes for a daemon that cannot be reached, and
// the request for one that did nothing.
func ofContext(ctx context.Context, err error) error {
	over := ctx.Err()
	if over == nil || errors.Is(err, over) {
		return err
	}
	return fmt.Errorf("%w: %w", over, context.Cause(ctx))
}

// ended is called at the end of each request. Closing what is idle also has
// what becomes idle from then on closed, until another request is made: the last
// one that was let through is the last to call it.
func (g *gate) ended() {
	if g.closed.Load() {
		g.idle()
	}
}

// close lets no request through any more.
func (g *gate) close() {
	g.closed.Store(true)
	g.idle()
}

// gatedBody tells when a response has been read.
type gatedBody struct {
	io.ReadCloser
	ended func()
}

func (b *gatedBody) Close() error {
	err := b.ReadCloser.Close()
	b.ended()
	return err
}
