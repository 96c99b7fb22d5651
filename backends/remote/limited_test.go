package remote

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Whoever meets a limit that lasts learns of it, and what to do: soon, and also when he has
// less time than that, or less than any budget.
func TestLimitIsTold(t *testing.T) {
	const whole = time.Minute
	for name, test := range map[string]struct {
		o        Options
		patience time.Duration // of the caller
		most     time.Duration // that it takes
	}{
		"soon":                           {Options{LimitBudget: 3 * time.Second}, whole, 6 * time.Second},
		"at the end of the whole budget": {Options{ConnectBudget: 5 * time.Second}, whole, 5 * time.Second},
		"at the caller's deadline":       {Options{LimitBudget: 3 * time.Second}, time.Second, time.Second},
	} {
		for _, first := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFar(ourCaps...)
					full := func(context.Context, int) error {
						return &tool.Error{Kind: tool.Overloaded, Message: "no process", Hint: "raise it", Retryable: true}
					}
					var e *Environment
					if first {
						f.dial = full
					} else {
						e = open(t, f, binding(), test.o)
						f.mu.Lock()
						f.dial = full
						f.mu.Unlock()
						f.cut()
						synctest.Wait()
					}
					ctx, cancel := context.WithTimeout(t.Context(), test.patience)
					defer cancel()
					before := time.Now()
					var err error
					if first {
						_, err = Open(ctx, f, binding(), nil, test.o)
					} else {
						_, err = e.Call(ctx, tool.Request{Name: "bash"})
					}
					wantKind(t, err, tool.Overloaded)
					if tool.HintOf(err) != "raise it" {
						t.Errorf("%v without the hint", err)
					}
					if took := time.Since(before); took > test.most {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
	// What has passed is not told of another failure.
	f := newFar(ourCaps...)
	f.dial = func(_ context.Context, n int) error {
		if n == 1 {
			return &tool.Error{Kind: tool.Overloaded, Message: "no process", Retryable: true}
		}
		return errTest
	}
	if _, err := Open(t.Context(), f, binding(), nil, Options{}); !errors.Is(err, errTest) || tool.KindOf(err) == tool.Overloaded {
		t.Errorf("got %v", err)
	}
}
