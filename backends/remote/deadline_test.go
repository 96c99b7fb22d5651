package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestDeadlines has each context end at its own time, as context.WithTimeout has it,
// though one timer serves them all.
func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadlines
		began := time.Now()
		over, release := d.within(t.Context(), time.Second)
		release() // the timer runs on
		if err := over.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("a context that was released ended by %v", err)
		}
		parent, cancel := context.WithCancel(t.Context())
		var contexts []context.Context
		for _, limit := range []time.Duration{5 * time.Second, 3 * time.Second, 500 * time.Millisecond} {
			ctx, release := d.within(t.Context(), limit)
			defer release()
			contexts = append(contexts, ctx)
			if at, ok := ctx.Deadline(); !ok || !at.Equal(began.Add(limit)) {
				t.Errorf("the deadline is %v", at)
			}
			child, release := context.WithCancel(ctx)
			defer release()
			contexts = append(contexts, child)
		}
		cancelled, release := d.within(parent, time.Hour)
		defer release()
		for i := len(contexts) - 2; i >= 0; i -= 2 {
			ctx, child := contexts[i], contexts[i+1]
			at, _ := ctx.Deadline()
			if ctx.Err() != nil || time.Now().After(at) {
				t.Errorf("a context ended before its time: %v", ctx.Err())
			}
			<-child.Done()
			<-ctx.Done()
			if !time.Now().Equal(at) {
				t.Errorf("a context ended after %v, due at %v", time.Since(began), at.Sub(began))
			}
			for _, err := range []error{ctx.Err(), context.Cause(ctx), context.Cause(child)} {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("it ended by %v", err)
				}
			}
		}
		cancel()
		if err := cancelled.Err(); !errors.Is(err, context.Canceled) {
			t.Errorf("the context of a parent that was cancelled ended by %v", err)
		}
	})
}

// TestDeadlineOfParent keeps the earlier deadline of a parent.
func TestDeadlineOfParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deadlines
		parent, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		at, _ := parent.Deadline()
		ctx, release := d.within(parent, time.Minute)
		defer release()
		if got, ok := ctx.Deadline(); !ok || !got.Equal(at) {
			t.Errorf("the deadline is %v, the parent's %v", got, at)
		}
		<-ctx.Done()
		if !time.Now().Equal(at) || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("it ended at %v by %v", time.Now(), ctx.Err())
		}
	})
}
