package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestBodiesBothWays(t *testing.T) {
	p := newPair(t, handlers{"echo": func(_ context.Context, r *Request) (Response, error) {
		return Response{Data: len(r.Body), Body: r.Body}, nil
	}}, ClientOptions{}, ServerOptions{})
	for _, size := range []int{0, 1, joinRaw, joinRaw + 1, bodyPiece, bodyPiece + 1, MaxRaw, BodyWindow, BodyWindow + 1, 15<<20 + 7, MaxBody} {
		if testing.Short() && size > BodyWindow+1 {
			continue
		}
		body := make([]byte, size)
		rand.Read(body)
		r, err := p.Call(t.Context(), "echo", nil, body)
		if err != nil || string(r.Data) != fmt.Sprint(size) || !bytes.Equal(r.Body, body) {
			t.Fatalf("%d bytes: %s, %d bytes, %v", size, r.Data, len(r.Body), err)
		}
	}
	_, err := p.Call(t.Context(), "echo", nil, make([]byte, MaxBody+1))
	wantKind(t, err, tool.InvalidParams)
	_, err = p.Do(t.Context(), ClientRequest{Method: "echo", Body: make([]byte, 11), MaxBody: 10})
	wantKind(t, err, tool.ProtocolMismatch)
	if _, err := p.Call(t.Context(), "echo", nil, []byte("still there")); err != nil {
		t.Error(err)
	}
}

// A body goes where the caller says, and the handler hears when its own is free again.
func TestBodyGoesIntoTheCallersBuffer(t *testing.T) {
	free := make(chan struct{}, 1)
	p := newPair(t, handlers{"echo": func(_ context.Context, r *Request) (Response, error) {
		return Response{Body: r.Body, Done: func() { free <- struct{}{} }}, nil
	}}, ClientOptions{}, ServerOptions{})
	body := make([]byte, 3*bodyPiece+1)
	rand.Read(body)
	room := make([]byte, len(body)+1)
	r, err := p.Do(t.Context(), ClientRequest{Method: "echo", Body: body, Into: func(size int) []byte { return room[:size] }})
	if err != nil || !bytes.Equal(r.Body, body) || &r.Body[0] != &room[0] {
		t.Errorf("%d bytes, %v, at their place: %t", len(r.Body), err, &r.Body[0] == &room[0])
	}
	receive(t, free)
	_, err = p.Do(t.Context(), ClientRequest{Method: "echo", Body: body, MaxBody: 1, Into: func(int) []byte {
		t.Error("room was made for a body that is too long")
		return room
	}})
	wantKind(t, err, tool.ProtocolMismatch)
}

// A stream that nobody reads holds up neither other calls nor itself when it is
// read in the end, and the sender never runs ahead of the window.
func TestSlowStream(t *testing.T) {
	const size = 3 * BodyWindow
	content := make([]byte, size)
	rand.Read(content)
	src := &countingReader{r: bytes.NewReader(content), closed: make(chan struct{})}
	p := newPair(t, handlers{
		"stream": func(context.Context, *Request) (Response, error) {
			return Response{Data: "s", Stream: src, Size: size}, nil
		},
		"echo": func(_ context.Context, r *Request) (Response, error) {
			return Response{Data: r.Data, Body: r.Body}, nil
		},
	}, ClientOptions{}, ServerOptions{})
	n, body, err := p.Stream(t.Context(), "stream", nil)
	if err != nil || n != size {
		t.Fatal(n, err)
	}
	for range 40 {
		if _, err := p.Call(t.Context(), "echo", nil, make([]byte, bodyPiece)); err != nil {
			t.Fatal(err)
		}
	}
	if read := src.count(); read > BodyWindow+bodyPiece {
		t.Errorf("%d bytes were sent to a reader that took none", read)
	}
	got, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(got, content) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := body.Close(); err != nil {
		t.Error(err)
	}
	receive(t, src.closed)
}

type countingReader struct {
	r      io.Reader
	mu     sync.Mutex
	n      int64
	closed chan struct{}
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += int64(n)
	return n, err
}

func (c *countingReader) count() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *countingReader) Close() error { close(c.closed); return nil }

func TestStreamsThatEndEarly(t *testing.T) {
	endless := func() *countingReader {
		return &countingReader{r: rand.Reader, closed: make(chan struct{})}
	}
	src := endless()
	p := newPair(t, handlers{
		"endless": func(context.Context, *Request) (Response, error) { return Response{Stream: src, Size: 1 << 40}, nil },
		"short": func(context.Context, *Request) (Response, error) {
			return Response{Stream: io.NopCloser(strings.NewReader("half")), Size: 8}, nil
		},
		"empty": func(context.Context, *Request) (Response, error) { return Response{Data: 1}, nil },
	}, ClientOptions{}, ServerOptions{})

	t.Run("closed by the reader", func(t *testing.T) {
		_, body, err := p.Stream(t.Context(), "endless", nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(body, make([]byte, 2*BodyWindow)); err != nil {
			t.Fatal(err)
		}
		body.Close()
		receive(t, src.closed)
		if _, err := body.Read(make([]byte, 1)); err == nil {
			t.Error("a read after Close succeeded")
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		src = endless()
		ctx, cancel := context.WithCancel(t.Context())
		_, body, err := p.Stream(ctx, "endless", nil)
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		_, err = io.Copy(io.Discard, body)
		wantKind(t, err, tool.Cancelled)
		body.Close()
		receive(t, src.closed)
	})
	t.Run("ended by the sender", func(t *testing.T) {
		_, body, err := p.Stream(t.Context(), "short", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if _, err := io.ReadAll(body); err == nil || !strings.Contains(err.Error(), "4 of 8") && !strings.Contains(err.Error(), "0 of 8") {
			t.Error(err)
		}
	})
	t.Run("empty", func(t *testing.T) {
		n, body, err := p.Stream(t.Context(), "empty", nil)
		if err != nil || n != 0 {
			t.Fatal(n, err)
		}
		defer body.Close()
		if got, err := io.ReadAll(body); len(got) > 0 || err != nil {
			t.Error(got, err)
		}
	})
	t.Run("connection lost", func(t *testing.T) {
		src = endless()
		_, body, err := p.Stream(t.Context(), "endless", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		p.Close()
		_, err = io.Copy(io.Discard, body)
		wantKind(t, err, tool.OutcomeUnknown)
	})
}
