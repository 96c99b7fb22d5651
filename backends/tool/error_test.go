package tool

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// late is a context whose deadline has passed, with a cause that says nothing of it.
func late(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithDeadlineCause(t.Context(), time.Unix(0, 0), cause)
	t.Cleanup(cancel)
	return ctx
}

func cancelled(t *testing.T, cause error) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	return ctx
}

func TestEndKind(t *testing.T) {
	for name, c := range map[string]struct {
		ctx  context.Context
		want Kind
	}{
		"cancelled":                      {cancelled(t, nil), Cancelled},
		"cancelled, for a cause":         {cancelled(t, errors.New("its owner has left")), Cancelled},
		"cancelled because time is over": {cancelled(t, context.DeadlineExceeded), Timeout},
		"cancelled, for one of ours":     {cancelled(t, Errorf(SessionNotFound, "it is not open")), SessionNotFound},
		"cancelled, for one within":      {cancelled(t, fmt.Errorf("it ends: %w", Errorf(Timeout, "too long"))), Timeout},
		"late":                           {late(t, nil), Timeout},
		"late, for a cause":              {late(t, errors.New("the program's time was over")), Timeout},
		"late, for one of ours":          {late(t, Errorf(Timeout, "the program's time was over")), Timeout},
		"late, and it was cancelled":     {late(t, Errorf(Cancelled, "nobody waits for it")), Cancelled},
	} {
		if got := EndKind(c.ctx); got != c.want {
			t.Errorf("%s: %s, not %s", name, got, c.want)
		}
	}
}
