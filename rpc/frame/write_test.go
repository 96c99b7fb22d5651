package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.lsp.dev/jsonrpc2"
)

// pair connects two streams by pipes.
func pair(t *testing.T, a, b Options) (*Stream, *Stream) {
	t.Helper()
	aIn, bOut := io.Pipe()
	bIn, aOut := io.Pipe()
	sa, sb := New(aIn, aOut, a), New(bIn, bOut, b)
	t.Cleanup(func() {
		sa.Close()
		sb.Close()
		<-sa.Done()
		<-sb.Done()
	})
	return sa, sb
}

// TestWriteOrder keeps the order of all that is queued, long and short.
func TestWriteOrder(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	const messages = 500
	for i := range messages {
		params := fmt.Appendf(nil, `[%d,"%s"]`, i, strings.Repeat("x", i%7*i%7*9000))
		var err error
		if i%2 == 0 {
			err = a.Notify("n", params, nil)
		} else {
			_, err = a.Write(t.Context(), jsonrpc2.NewNotification("n", params))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range messages {
		msg, _, err := b.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := string(msg.(*jsonrpc2.Notification).Params()); !strings.HasPrefix(got, fmt.Sprintf("[%d,", i)) {
			t.Fatalf("message %d is %.20s", i, got)
		}
	}
	if err := a.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, size := a.Backlog(); n != 0 || size != 0 {
		t.Fatalf("%d messages, %d bytes are left after a flush", n, size)
	}
}

// TestWriteNeverWaits queues for a peer that does not read, up to the limit.
func TestWriteNeverWaits(t *testing.T) {
	var mu sync.Mutex
	var ended []error
	a, _ := pair(t, Options{WriteEnd: func(err error) {
		mu.Lock()
		defer mu.Unlock()
		ended = append(ended, err)
	}}, Options{})
	for i := range MaxQueued {
		if err := a.Notify("n", nil, nil); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	if n, _ := a.Backlog(); n != MaxQueued {
		t.Fatalf("%d messages wait, want %d", n, MaxQueued)
	}
	if err := a.Notify("n", nil, nil); !errors.Is(err, ErrSlowPeer) {
		t.Fatalf("one more gives %v, want %v", err, ErrSlowPeer)
	}
	if _, err := a.Write(t.Context(), jsonrpc2.NewNotification("n", nil)); !errors.Is(err, ErrSlowPeer) {
		t.Fatalf("writing afterwards gives %v", err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(ended) != 1 || !errors.Is(ended[0], ErrSlowPeer) {
		t.Fatalf("told of %v, want of the slow peer once", ended)
	}
}

// TestNotificationBytes bounds notifications by size, not answers, and lets a
// single one through whatever its size.
func TestNotificationBytes(t *testing.T) {
	a, _ := pair(t, Options{}, Options{})
	half := []byte(`"` + strings.Repeat("x", MaxNotified/2) + `"`)
	if err := a.Notify("n", half, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Write(t.Context(), jsonrpc2.NewResponse(jsonrpc2.NewNumberID(1), half, nil)); err != nil {
		t.Fatalf("an answer: %v", err)
	}
	if err := a.Notify("n", half, nil); !errors.Is(err, ErrSlowPeer) {
		t.Fatalf("too many bytes of notifications give %v", err)
	}
}

// TestRoom waits for a peer that reads slowly, not for one that is deaf, and no
// longer than its caller wants or the stream is open.
func TestRoom(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	room := func(ctx context.Context, messages int, patience time.Duration) <-chan struct{} {
		there := make(chan struct{})
		go func() {
			defer close(there)
			a.Room(ctx, messages, MaxNotified, patience)
		}()
		return there
	}
	<-room(t.Context(), 0, time.Hour) // nothing waits
	for range 3 {
		if err := a.Notify("n", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	<-room(t.Context(), 3, time.Hour)
	<-room(t.Context(), 0, time.Nanosecond) // deaf
	ctx, cancel := context.WithCancel(t.Context())
	gone, there := room(ctx, 0, time.Hour), room(t.Context(), 0, time.Hour)
	cancel()
	<-gone
	select {
	case <-there:
		t.Error("there is room while three messages wait")
	default:
	}
	for range 3 {
		if _, _, err := b.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	<-there
	if err := a.Notify("n", []byte(`"`+strings.Repeat("x", 1<<20)+`"`), nil); err != nil {
		t.Fatal(err)
	}
	ended := room(t.Context(), 0, time.Hour)
	a.Close()
	<-ended
}

// TestDone is called for what was written and for what never will be.
func TestDone(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	written := make(chan struct{})
	if err := a.Notify("n", nil, func() { close(written) }); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Read(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-written

	var dropped sync.WaitGroup
	for range 3 {
		dropped.Add(1)
		if err := a.Notify("n", nil, dropped.Done); err != nil {
			t.Fatal(err)
		}
	}
	a.Close()
	dropped.Wait()
	dropped.Add(1)
	if err := a.Notify("n", nil, dropped.Done); !errors.Is(err, ErrClosed) {
		t.Fatalf("a closed stream gives %v", err)
	}
	dropped.Wait()
}

type brokenWriter struct{ nopWriter }

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteFails(t *testing.T) {
	ended := make(chan error, 2)
	in, feed := io.Pipe()
	defer feed.Close()
	s := New(in, brokenWriter{}, Options{WriteEnd: func(err error) { ended <- err }})
	defer s.Close()
	if err := s.Notify("n", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errBroken) {
		t.Fatalf("told of %v", err)
	}
	<-s.Done()
	if err := s.Flush(t.Context()); !errors.Is(err, errBroken) {
		t.Fatalf("a flush says %v", err)
	}
	if err := s.Notify("n", nil, nil); !errors.Is(err, errBroken) {
		t.Fatalf("writing on gives %v", err)
	}
}

// TestClosedByAnother: the pipes to a process, which whoever waited for it has closed,
// are closed without an error.
func TestClosedByAnother(t *testing.T) {
	in, feed, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	drain, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s := New(in, out, Options{})
	for _, f := range []*os.File{in, feed, drain, out} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestFlushHeedsContext(t *testing.T) {
	a, _ := pair(t, Options{}, Options{})
	if err := a.Notify("n", nil, nil); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := a.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
}

// TestConcurrentWriters is for the race detector, and checks that frames do
// not mix.
func TestConcurrentWriters(t *testing.T) {
	a, b := pair(t, Options{}, Options{})
	const writers, each = 16, 100
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				params := fmt.Appendf(nil, `["%d","%s"]`, w, strings.Repeat("y", i*37%4096))
				if err := a.Notify("n", params, nil); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range writers * each {
		if _, _, err := b.Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, size := range []int{100, 4 << 10, 1 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			aIn, bOut := io.Pipe()
			bIn, aOut := io.Pipe()
			client, server := jsonrpc2.NewConn(New(aIn, aOut, Options{})), jsonrpc2.NewConn(New(bIn, bOut, Options{}))
			client.Go(b.Context(), jsonrpc2.MethodNotFoundHandler)
			server.Go(b.Context(), func(_ context.Context, r *jsonrpc2.Request) (any, error) { return r.Params(), nil })
			params := jsonrpc2.RawMessage(`{"data":"` + strings.Repeat("x", size) + `"}`)
			b.ReportAllocs()
			for b.Loop() {
				var result jsonrpc2.RawMessage
				if _, err := client.Call(b.Context(), "echo", params, &result); err != nil {
					b.Fatal(err)
				}
			}
			b.StopTimer()
			client.Close()
			server.Close()
		})
	}
}
