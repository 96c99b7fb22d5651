package backends

import (
	"context"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ErrDetached is the error of what is asked of an environment after Detach or
// Shutdown, and of what these end.
func ErrDetached() error { return tool.Errorf(tool.Cancelled, "the environment was let go of") }

// Within returns a context that is ctx, and ends with life as well, with the
// cause that life has. Release must be called when what it is for is over; the
// context has ended then.
//
// It is for calls, nearly all of which are over before anybody waits for their
// context: it hooks itself into the two only when its Done is asked for, which
// costs more than a short call.
func Within(ctx, life context.Context) (within context.Context, release func()) {
	w := &both{ctx: ctx, life: life}
	return w, w.release
}

// both is the context of Within.
type both struct {
	ctx, life context.Context

	mu       sync.Mutex
	released bool
	merged   context.Context // nil until Done is asked for, or one has ended
	cancel   context.CancelCauseFunc
	unhook   func() bool
}

// merge makes the context that everything is asked of from then on.
func (b *both) merge() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.merged == nil {
		b.merged, b.cancel = context.WithCancelCause(b.ctx)
		switch { // at once, and not on another goroutine
		case b.life.Err() != nil:
			b.cancel(context.Cause(b.life))
		case b.released:
			b.cancel(nil)
		}
		if b.merged.Err() == nil {
			b.unhook = context.AfterFunc(b.life, func() { b.cancel(context.Cause(b.life)) })
		}
	}
	return b.merged
}

// now is the context that can be asked, without making one where none has
// ended.
func (b *both) now() context.Context {
	b.mu.Lock()
	merged, released := b.merged, b.released
	b.mu.Unlock()
	switch {
	case merged != nil:
		return merged
	case released || b.ctx.Err() != nil || b.life.Err() != nil:
		return b.merge()
	default:
		return b.ctx
	}
}

func (b *both) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.released = true
	if b.unhook != nil {
		b.unhook()
	}
	if b.cancel != nil {
		b.cancel(nil)
	}
}

// Deadline implements [context.Context].
func (b *both) Deadline() (time.Time, bool) {
	deadline, ok := b.ctx.Deadline()
	if other, also := b.life.Deadline(); also && (!ok || other.Before(deadline)) {
		return other, true
	}
	return deadline, ok
}

// Done implements [context.Context].
func (b *both) Done() <-chan struct{} { return b.merge().Done() }

// Err implements [context.Context].
func (b *both) Err() error { return b.now().Err() }

// Value implements [context.Context]. The cause is a value.
func (b *both) Value(key any) any { return b.now().Value(key) }

// Await waits until all are done, or ctx ends: the error is the cause of that.
// Nobody may begin meanwhile. Those who go on are not waited for here, and a
// goroutine stays with them until they are done.
func Await(ctx context.Context, all *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
