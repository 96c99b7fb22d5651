package backends

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// A context within two ends with either, with the cause of that one, whether or
// not somebody has asked for its Done before.
func TestWithin(t *testing.T) {
	type key struct{}
	cause := errors.New("the cause")
	for _, asked := range []bool{false, true} {
		for name, end := range map[string]func(ctx, life context.CancelCauseFunc, release func()){
			"ctx":     func(ctx, _ context.CancelCauseFunc, _ func()) { ctx(cause) },
			"life":    func(_, life context.CancelCauseFunc, _ func()) { life(cause) },
			"release": func(_, _ context.CancelCauseFunc, release func()) { release() },
		} {
			ctx, endCtx := context.WithCancelCause(context.WithValue(t.Context(), key{}, name))
			life, endLife := context.WithCancelCause(t.Context())
			w, release := Within(ctx, life)
			if asked {
				select {
				case <-w.Done():
					t.Errorf("%s: it has ended at once", name)
				default:
				}
			}
			if w.Err() != nil || context.Cause(w) != nil || w.Value(key{}) != name {
				t.Errorf("%s: %v, %v, %v", name, w.Err(), context.Cause(w), w.Value(key{}))
			}
			child, endChild := context.WithCancel(w)
			end(endCtx, endLife, release)
			<-w.Done()
			<-child.Done()
			want := cause
			if name == "release" {
				want = context.Canceled
			}
			if !errors.Is(w.Err(), context.Canceled) || !errors.Is(context.Cause(w), want) || w.Value(key{}) != name {
				t.Errorf("%s, %v: %v because of %v", name, asked, w.Err(), context.Cause(w))
			}
			endChild()
			release()
			release()
			endCtx(nil)
			endLife(nil)
		}
	}
}

// One that nobody waited for has ended with its release all the same.
func TestWithinUnasked(t *testing.T) {
	life, endLife := context.WithCancelCause(t.Context())
	w, release := Within(t.Context(), life)
	release()
	if !errors.Is(w.Err(), context.Canceled) {
		t.Errorf("it goes on: %v", w.Err())
	}
	cause := errors.New("the cause")
	other, releaseOther := Within(t.Context(), life)
	defer releaseOther()
	endLife(cause)
	if !errors.Is(context.Cause(other), cause) {
		t.Errorf("it ended because of %v", context.Cause(other))
	}
}

// Await ends with those that it waits for, or with its context.
func TestAwait(t *testing.T) {
	var all sync.WaitGroup
	if err := Await(t.Context(), &all); err != nil {
		t.Errorf("of nobody: %v", err)
	}
	cause := errors.New("the cause")
	over := make(chan struct{})
	all.Go(func() { <-over })
	ctx, end := context.WithCancelCause(t.Context())
	end(cause)
	if err := Await(ctx, &all); !errors.Is(err, cause) {
		t.Errorf("of one that goes on: %v", err)
	}
	ended := make(chan error)
	go func() { ended <- Await(t.Context(), &all) }()
	close(over)
	if err := <-ended; err != nil {
		t.Errorf("of one that has ended: %v", err)
	}
}
