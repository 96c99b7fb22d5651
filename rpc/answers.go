package rpc

import (
	"context"
	"sync"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/frame"
)

// answers is the stream as the connection writes to it. It knows which requests
// have no answer in the stream yet: the library writes one only after the
// handler has returned it.
type answers struct {
	*frame.Stream

	mu sync.Mutex
	// owed holds the library's contexts of those requests: it writes the answer
	// with the context that the handler was called with.
	owed map[context.Context]struct{}
	// noneCh is closed when nothing is owed; nil while nobody waits.
	noneCh chan struct{}
}

// owe notes that a request was read.
func (a *answers) owe(request context.Context) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.owed == nil {
		a.owed = map[context.Context]struct{}{}
	}
	a.owed[request] = struct{}{}
}

// Write implements [jsonrpc2.Stream].
func (a *answers) Write(ctx context.Context, msg jsonrpc2.Message) (int64, error) {
	n, err := a.Stream.Write(ctx, msg)
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.owed, ctx)
	if len(a.owed) == 0 && a.noneCh != nil {
		close(a.noneCh)
		a.noneCh = nil
	}
	return n, err
}

// wait waits until every request that was read has its answer in the stream,
// the stream takes none any more, or ctx is done.
func (a *answers) wait(ctx context.Context) {
	a.mu.Lock()
	if len(a.owed) == 0 {
		a.mu.Unlock()
		return
	}
	if a.noneCh == nil {
		a.noneCh = make(chan struct{})
	}
	none := a.noneCh
	a.mu.Unlock()
	select {
	case <-none:
	case <-a.Done():
	case <-ctx.Done():
	}
}
