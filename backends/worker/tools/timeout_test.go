package tools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A call's context ends at its time, for whoever waits and for whoever asks,
// and with its parent and its call.
func TestTimeout(t *testing.T) {
	waiting, cancel := withTimeout(t.Context(), "grep", time.Millisecond)
	defer cancel()
	<-waiting.Done()
	wantTimeout(waiting, t)

	asking, cancel := withTimeout(t.Context(), "grep", time.Millisecond)
	defer cancel()
	for asking.Err() == nil {
	}
	wantTimeout(asking, t)

	cause := errors.New("the cause")
	parent, end := context.WithCancelCause(t.Context())
	inner, cancel := withTimeout(parent, "grep", time.Hour)
	defer cancel()
	if inner.Err() != nil || context.Cause(inner) != nil {
		t.Errorf("it has ended at once: %v", inner.Err())
	}
	if at, ok := inner.Deadline(); !ok || time.Until(at) < time.Minute {
		t.Errorf("its deadline is %v, %v", at, ok)
	}
	end(cause)
	if !errors.Is(inner.Err(), context.Canceled) || !errors.Is(context.Cause(inner), cause) {
		t.Errorf("%v because of %v", inner.Err(), context.Cause(inner))
	}

	over, cancel := withTimeout(t.Context(), "grep", time.Hour)
	cancel()
	if <-over.Done(); !errors.Is(over.Err(), context.Canceled) {
		t.Errorf("a call that is over: %v", over.Err())
	}
}

func wantTimeout(ctx context.Context, t *testing.T) {
	t.Helper()
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) || tool.KindOf(ended(ctx)) != tool.Timeout {
		t.Errorf("%v, %v", ctx.Err(), ended(ctx))
	}
}
