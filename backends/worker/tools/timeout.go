package tools

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// timeout is the context of a call that may take until a time. A timer, and the
// error that it would end with, are made only when somebody waits for the
// context: most calls are over before.
type timeout struct {
	parent context.Context
	tool   string
	after  time.Duration
	at     time.Time

	mu       sync.Mutex
	released bool
	timed    context.Context // nil until somebody waits or the time has come
	cancel   context.CancelFunc
}

// withTimeout returns the context of a call of a tool. Cancel must be called
// when the call is over.
func withTimeout(ctx context.Context, name string, after time.Duration) (within context.Context, cancel func()) {
	t := &timeout{parent: ctx, tool: name, after: after, at: time.Now().Add(after)}
	return t, t.release
}

func (t *timeout) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.released = true
	if t.cancel != nil {
		t.cancel()
	}
}

// wait makes the context that ends at the time.
func (t *timeout) wait() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timed == nil {
		t.timed, t.cancel = context.WithDeadlineCause(t.parent, t.at,
			tool.Errorf(tool.Timeout, "%s took longer than %s", t.tool, t.after))
		if t.released {
			t.cancel()
		}
	}
	return t.timed
}

// now is the context that can be asked, without a timer before the time.
func (t *timeout) now() context.Context {
	t.mu.Lock()
	timed, released := t.timed, t.released
	t.mu.Unlock()
	switch {
	case timed != nil:
		return timed
	case !released && time.Now().Before(t.at):
		return t.parent
	default:
		return t.wait()
	}
}

// Deadline implements [context.Context].
func (t *timeout) Deadline() (time.Time, bool) {
	if deadline, ok := t.parent.Deadline(); ok && deadline.Before(t.at) {
		return deadline, true
	}
	return t.at, true
}

// Done implements [context.Context].
func (t *timeout) Done() <-chan struct{} { return t.wait().Done() }

// Err implements [context.Context].
func (t *timeout) Err() error { return t.now().Err() }

// Value implements [context.Context]. The cause is a value.
func (t *timeout) Value(key any) any { return t.now().Value(key) }
