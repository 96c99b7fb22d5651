package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

func call(name string) protocol.ToolCallParams {
	return protocol.ToolCallParams{SessionID: "s1", Name: name, Arguments: []byte(`{}`)}
}

// kindOf is the kind of an error answer, "" for anything else.
func kindOf(err error) protocol.Kind {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Kind()
	}
	return ""
}

// TestBurst fills every slot with calls that wait. One more is refused at once;
// waits, cancellations and what stops a process still get through; each
// cancelled call is answered once.
func TestBurst(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	open(t, c)
	started, err := c.ProcessStart(t.Context(), protocol.ProcessStartParams{SessionID: "s1", Command: "x"})
	if err != nil {
		t.Fatal(err)
	}

	answers := make(chan error, maxRequests)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range maxRequests {
		callCtx := t.Context()
		if i < 8 {
			callCtx = ctx
		}
		go func() {
			_, err := c.ToolCall(callCtx, call("block"))
			answers <- err
		}()
	}
	for range maxRequests {
		<-h.entered
	}

	_, err = c.ToolCall(t.Context(), call("echo"))
	var refused *protocol.Error
	if !errors.As(err, &refused) || refused.Code != protocol.CodeOverloaded || !refused.Data.Retryable || refused.Kind() != protocol.KindOverloaded {
		t.Fatalf("one call more gives %v", err)
	}

	waited := make(chan error, 1)
	go func() {
		_, err := c.ProcessWait(t.Context(), protocol.ProcessWaitParams{SessionID: "s1", ProcessID: started.Process.ID})
		waited <- err
	}()
	stopped, err := c.ProcessStop(t.Context(), protocol.ProcessParams{SessionID: "s1", ProcessID: started.Process.ID})
	if err != nil || stopped.Process.Status != protocol.ProcessExited {
		t.Fatalf("a full service does not stop a process: %v", err)
	}
	if err := <-waited; err != nil {
		t.Fatalf("a full service does not wait: %v", err)
	}

	cancel()
	for range 8 {
		if err := <-answers; !errors.Is(err, context.Canceled) {
			t.Fatalf("a cancelled call gives %v", err)
		}
	}
	// The slots are free again when the cancelled work has stopped.
	for tries := 0; ; tries++ {
		if _, err = c.ToolCall(t.Context(), call("echo")); err == nil {
			break
		}
		if kindOf(err) != protocol.KindOverloaded || tries > 10_000 {
			t.Fatalf("the slots of cancelled calls are not free: %v", err)
		}
	}
	h.release()
	for range maxRequests - 8 {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}

// A session whose calls fill every slot can still be closed, which ends them.
func TestFullServiceCloses(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	open(t, c)
	answers := make(chan error, maxRequests)
	for range maxRequests {
		go func() {
			_, err := c.ToolCall(t.Context(), call("block"))
			answers <- err
		}()
	}
	for range maxRequests {
		<-h.entered
	}
	closed, err := c.SessionClose(t.Context(), protocol.SessionParams{SessionID: "s1"})
	if err != nil || closed.Session.State != protocol.SessionClosed {
		t.Fatalf("%+v, %v", closed, err)
	}
	for range maxRequests {
		if err := <-answers; kindOf(err) != protocol.KindCancelled {
			t.Fatalf("a call of a closed session gives %v", err)
		}
	}
	if _, err := c.SessionDelete(t.Context(), protocol.SessionDeleteParams{SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
}

// TestWaitsAreBounded refuses waits beyond their own bound, and nothing else.
func TestWaitsAreBounded(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	open(t, c)
	started, err := c.ProcessStart(t.Context(), protocol.ProcessStartParams{SessionID: "s1", Command: "x"})
	if err != nil {
		t.Fatal(err)
	}
	wait := protocol.ProcessWaitParams{SessionID: "s1", ProcessID: started.Process.ID}
	answers := make(chan error, maxWaits+1)
	for range maxWaits + 1 {
		go func() {
			_, err := c.ProcessWait(t.Context(), wait)
			answers <- err
		}()
	}
	if err := <-answers; kindOf(err) != protocol.KindOverloaded {
		t.Fatalf("the first answer is %v, want overloaded", err)
	}
	if _, err := c.ToolCall(t.Context(), call("echo")); err != nil {
		t.Fatalf("a call beside the waits: %v", err)
	}
	h.env().exit("p-00000000000000000000", 0)
	for range maxWaits {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
}

// TestStubbornWork is answered after the grace although it does not stop; its
// slot stays taken until it does.
func TestStubbornWork(t *testing.T) {
	h := serve(t, func(s *server) { s.grace = 10 * time.Millisecond })
	p := startRaw(t, h)
	p.send(`{"id":3,"method":"tool/call","params":{"sessionId":"s1","name":"stubborn","arguments":{}}}`)
	<-h.entered
	p.send(`{"method":"$/cancelRequest","params":{"id":3}}`)
	p.expect(`{"id":3,"error":{"code":-32017,"message":"<string>","data":{"kind":"outcomeUnknown","outcomeUnknown":true,"retryable":false,"...":""}}}`)
	h.server.mu.Lock()
	working := h.server.working
	h.server.mu.Unlock()
	if working != 1 {
		t.Fatalf("%d slots are taken, want that of the call that goes on", working)
	}
	h.release()
}

// startRaw initializes a connection that speaks frames by hand, with a session.
func startRaw(t *testing.T, h *harness) *player {
	p := playerOf(t, h)
	p.send(`{"id":1,"method":"initialize","params":{"processId":null}}`)
	p.expect(`{"id":1,"result":{"...":""}}`)
	p.send(p.expand(`{"id":2,"method":"session/open","params":{"sessionId":"s1","workspace":"${workspace}"}}`))
	p.expect(`{"id":2,"result":{"...":""}}`)
	return p
}

// TestPanic is one request's fault.
func TestPanic(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	open(t, c)
	if _, err := c.ToolCall(t.Context(), call("panic")); kindOf(err) != protocol.KindInternal {
		t.Fatalf("a panic gives %v", err)
	}
	if _, err := c.ToolCall(t.Context(), call("echo")); err != nil {
		t.Fatal(err)
	}
}

// TestSlowClient does not read for a while: requests are answered with
// overloaded when too much waits, and all is well when it reads again.
func TestSlowClient(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	const requests = 100 // of 2 MiB each: more than the backlog takes
	for i := range requests {
		p.send(fmt.Sprintf(`{"id":%d,"method":"tool/call","params":{"sessionId":"s1","name":"big","arguments":{}}}`, 100+i))
	}
	var whole, refused int
	for range requests {
		msg := p.answer()
		if msg["error"] == nil {
			whole++
			continue
		}
		if code := msg["error"].(map[string]any)["code"]; code != float64(protocol.CodeOverloaded) {
			t.Fatalf("an answer is %v", msg)
		}
		refused++
	}
	if whole < maxBacklog>>21 || whole+refused != requests || refused == 0 {
		t.Fatalf("%d whole answers and %d refusals of %d", whole, refused, requests)
	}
	p.send(`{"id":5,"method":"tool/call","params":{"sessionId":"s1","name":"echo","arguments":{}}}`)
	p.expect(`{"id":5,"result":{"...":""}}`)
}

// answer is the next message that is no notification.
func (p *player) answer() map[string]any {
	for {
		if msg := p.receive().(map[string]any); msg["method"] == nil {
			return msg
		}
	}
}

// TestDeafClient is disconnected when more changes pile up than are kept.
func TestDeafClient(t *testing.T) {
	h := serve(t, nil)
	startRaw(t, h)
	for range protocol.MaxPendingNotifications + 100 {
		h.server.notify(protocol.MethodSessionChanged, protocol.SessionChangedParams{})
	}
	if code := h.wait(t); code != ExitUnclean || !errors.Is(h.err, frame.ErrSlowPeer) {
		t.Fatalf("the service ends with %d, %v", code, h.err)
	}
}

// TestFloodOfEvents has an environment tell more than a client that reads slowly is
// disconnected for: the events wait, and other answers pass them.
func TestFloodOfEvents(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	env := h.env()
	if _, err := env.Start(t.Context(), startRequest()); err != nil {
		t.Fatal(err)
	}
	const events = 2 * protocol.MaxPendingNotifications
	for range events {
		if _, err := env.change("p-00000000000000000000", "updated", func(*doubleProcess) {}); err != nil {
			t.Fatal(err)
		}
	}
	p.send(`{"id":5,"method":"tool/call","params":{"sessionId":"s1","name":"echo","arguments":{}}}`)
	before, answered := 0, false
	for told := 0; told < events; {
		switch msg := p.receive().(map[string]any); {
		case msg["method"] == protocol.MethodProcessEvent && msg["params"].(map[string]any)["type"] == "updated":
			told++
		case msg["id"] == float64(5):
			before, answered = told, true
		}
	}
	if !answered || before > 2*maxUnread {
		t.Errorf("the answer came, %t, after %d of %d events", answered, before, events)
	}
}

// TestLargeResult passes megabytes of raw JSON on byte for byte.
func TestLargeResult(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{}, client.Options{})
	open(t, c)
	r, err := c.ToolCall(t.Context(), call("big"))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"data":"` + strings.Repeat("x", 2<<20) + `"}`; string(r.StructuredContent) != want {
		t.Fatalf("%d bytes came, want %d", len(r.StructuredContent), len(want))
	}
}

// TestManyQuickCalls gives each caller its own answer.
func TestManyQuickCalls(t *testing.T) {
	h := serve(t, nil)
	c := h.connect(t, protocol.ClientCapabilities{ExecutionEvents: true}, client.Options{})
	open(t, c)
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			for i := range 100 {
				want := fmt.Sprintf(`{"n":"%d-%d"}`, worker, i)
				r, err := c.ToolCall(t.Context(), protocol.ToolCallParams{SessionID: "s1", Name: "echo", Arguments: []byte(want)})
				if err != nil || string(r.StructuredContent) != want {
					t.Errorf("got %s, %v; want %s", r.StructuredContent, err, want)
					return
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkToolCall(b *testing.B) {
	h := serve(b, nil)
	c := h.connect(b, protocol.ClientCapabilities{}, client.Options{})
	open(b, c)
	p := protocol.ToolCallParams{SessionID: "s1", Name: "echo", Arguments: []byte(`{"data":"` + strings.Repeat("x", 2000) + `"}`)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.ToolCall(b.Context(), p); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFileRead(b *testing.B) {
	h := serve(b, nil)
	c := h.connect(b, protocol.ClientCapabilities{}, client.Options{})
	open(b, c)
	h.files["/w/big"] = []byte(strings.Repeat("0123456789abcdef", protocol.MaxFileBytes/16))
	b.SetBytes(protocol.MaxFileBytes)
	for b.Loop() {
		if _, err := c.FileRead(b.Context(), protocol.FileReadParams{SessionID: "s1", Path: "big"}); err != nil {
			b.Fatal(err)
		}
	}
}
