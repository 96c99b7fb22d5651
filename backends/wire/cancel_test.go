package wire

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestCancel(t *testing.T) {
	started, ended := make(chan struct{}, 1), make(chan struct{})
	proceed := make(chan struct{})
	p := newPair(t, handlers{
		"wait": func(ctx context.Context, _ *Request) (Response, error) {
			started <- struct{}{}
			<-ctx.Done()
			<-proceed
			close(ended)
			return Response{}, ctx.Err()
		},
		"finish": func(ctx context.Context, _ *Request) (Response, error) {
			started <- struct{}{}
			<-ctx.Done()
			return Response{Data: "done all the same"}, nil
		},
		"fail": func(ctx context.Context, _ *Request) (Response, error) {
			started <- struct{}{}
			<-ctx.Done()
			return Response{}, tool.Errorf(tool.Denied, "really")
		},
	}, ClientOptions{}, ServerOptions{})

	t.Run("the answer comes only when the handler ended", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		result := make(chan error, 1)
		go func() { _, err := p.Call(ctx, "wait", nil, nil); result <- err }()
		receive(t, started)
		why := errors.New("why")
		cancel(why)
		select {
		case err := <-result:
			t.Fatalf("answered while the handler runs: %v", err)
		case proceed <- struct{}{}: // the handler got the cancellation
		}
		err := receive(t, result)
		wantKind(t, err, tool.Cancelled)
		if !errors.Is(err, why) {
			t.Errorf("the cause is lost: %v", err)
		}
		receive(t, ended)
	})
	t.Run("a result that came first counts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		r, err := p.Call(ctx, "finish", nil, nil)
		if err != nil || string(r.Data) != `"done all the same"` {
			t.Error(r, err)
		}
	})
	t.Run("an error with a kind of its own counts", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-started; cancel() }()
		_, err := p.Call(ctx, "fail", nil, nil)
		wantKind(t, err, tool.Denied)
	})
	t.Run("a deadline", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		go func() {
			<-ctx.Done()
			select {
			case <-started:
			case <-t.Context().Done(): // it was never sent
			}
		}()
		if _, err := p.Call(ctx, "finish", nil, nil); err != nil {
			wantKind(t, err, tool.Timeout) // when it ended before it was sent
		}
	})
	t.Run("before it was sent", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := p.Call(ctx, "wait", nil, nil)
		wantKind(t, err, tool.Cancelled)
		if !errors.Is(err, ErrNotSent) {
			t.Error(err)
		}
	})
}

// A worker that ends gives its calls up. Nobody asked for that, and what they
// have done stays done.
func TestCancelledByTheFarEnd(t *testing.T) {
	started := make(chan struct{}, 1)
	h := handlers{
		"end": func(context.Context, *Request) (Response, error) {
			return Response{}, tool.Errorf(tool.Cancelled, "the call was cancelled")
		},
		"wait": func(ctx context.Context, _ *Request) (Response, error) {
			started <- struct{}{}
			<-ctx.Done()
			return Response{}, ctx.Err()
		},
	}
	p := newPair(t, h, ClientOptions{}, ServerOptions{})
	_, err := p.Call(t.Context(), "end", nil, nil)
	wantKind(t, err, tool.OutcomeUnknown)

	result := make(chan error, 1)
	go func() { _, err := p.Call(t.Context(), "wait", nil, nil); result <- err }()
	receive(t, started)
	if err := p.Quiesce(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKind(t, receive(t, result), tool.Cancelled) // the host did ask
}

func TestCancelGrace(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	p := newPair(t, handlers{"deaf": func(context.Context, *Request) (Response, error) {
		started <- struct{}{}
		<-release
		return Response{}, nil
	}}, ClientOptions{CancelGrace: 50 * time.Millisecond}, ServerOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	other := make(chan error, 1)
	go func() { _, err := p.Call(t.Context(), "deaf", nil, nil); other <- err }()
	go func() {
		for range 2 {
			<-started
		}
		cancel()
	}()
	_, err := p.Call(ctx, "deaf", nil, nil)
	wantKind(t, err, tool.OutcomeUnknown)
	wantKind(t, receive(t, other), tool.OutcomeUnknown)
	receive(t, p.Done())
	if !errors.Is(p.Err(), errNoReply) {
		t.Error(p.Err())
	}
	close(release)
	p.wait(t)
	_, err = p.Call(t.Context(), "deaf", nil, nil)
	wantKind(t, err, tool.BackendUnavailable)
	if !errors.Is(err, ErrNotSent) {
		t.Error(err)
	}
}
