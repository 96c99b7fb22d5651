package rpc

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

func startRequest() tool.StartRequest { return tool.StartRequest{Command: "x", Actor: "s1"} }

func TestTextPage(t *testing.T) {
	tests := map[string]struct {
		data       string
		start      int64
		arbitrary  bool
		eof        bool
		text       string
		begin, end int64 // offsets of the page
		lossy      bool
	}{
		"plain":                     {data: "abc", text: "abc", end: 3},
		"whole character":           {data: "aü", text: "aü", end: 3},
		"half a character":          {data: "a\xc3", text: "a", end: 1},
		"three of four":             {data: "a\xf0\x9f\x98", text: "a", end: 1},
		"half, and no more":         {data: "a\xc3", eof: true, text: "a�", end: 2, lossy: true},
		"no character at the end":   {data: "a\xff", text: "a�", end: 2, lossy: true},
		"invalid in the middle":     {data: "a\xffb", text: "a�b", end: 3, lossy: true},
		"NUL":                       {data: "a\x00b", text: "a\x00b", end: 3},
		"tail within a character":   {data: "\xbcb", start: 5, arbitrary: true, text: "b", begin: 6, end: 7},
		"offset within a character": {data: "\xbcb", start: 5, text: "�b", begin: 5, end: 7, lossy: true},
		"tail at the beginning":     {data: "\xbcb", arbitrary: true, text: "�b", end: 2, lossy: true},
		"only continuations":        {data: "\x80\x80\x80\x80\x80", start: 9, arbitrary: true, text: "�", begin: 12, end: 14, lossy: true},
		"nothing":                   {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			page := textPage(session.ProcessOutput{
				Data: []byte(test.data), StartOffset: test.start, EndOffset: test.start + int64(len(test.data)), EOF: test.eof,
			}, test.arbitrary)
			if page.Data != test.text || page.StartOffset != test.begin || page.EndOffset != test.end || page.Lossy != test.lossy {
				t.Errorf("got %q [%d,%d) lossy %v", page.Data, page.StartOffset, page.EndOffset, page.Lossy)
			}
		})
	}
}

// startProcess starts the one process of the session.
func startProcess(t *testing.T, h *harness, o client.Options) (*client.Client, string) {
	t.Helper()
	c := h.connect(t, protocol.ClientCapabilities{ProcessOutput: true}, o)
	open(t, c)
	r, err := c.ProcessStart(t.Context(), protocol.ProcessStartParams{SessionID: "s1", Command: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return c, r.Process.ID
}

const first = "p-00000000000000000000"

// TestReadWaitsForWholeCharacter does not answer with nothing again and again
// while a character is only half written.
func TestReadWaitsForWholeCharacter(t *testing.T) {
	h := serve(t, nil)
	c, id := startProcess(t, h, client.Options{})
	h.env().write(first, "\xc3")
	var zero int64
	read := protocol.ProcessReadParams{SessionID: "s1", ProcessID: id, Offset: &zero, WaitMs: 20}
	r, err := c.ProcessRead(t.Context(), read)
	if err != nil {
		t.Fatal(err)
	}
	if r.Data != "" || !r.TimedOut || r.EndOffset != 0 {
		t.Fatalf("half a character gives %+v", r)
	}
	read.WaitMs = 60_000
	done := make(chan protocol.ProcessReadResult, 1)
	go func() {
		r, err := c.ProcessRead(t.Context(), read)
		if err != nil {
			t.Error(err)
		}
		done <- r
	}()
	h.env().write(first, "\xbc!")
	if r := <-done; !strings.HasPrefix(r.Data, "ü") || r.TimedOut || r.Lossy {
		t.Fatalf("got %+v", r)
	}
}

// outputs collects what a subscription sends and checks that no offset is left
// out or goes back.
type outputs struct {
	t    *testing.T
	next int64
	data []byte
	gaps int
	done chan struct{}
}

func (o *outputs) add(p protocol.ProcessOutputParams) {
	if p.Offset != o.next {
		o.t.Errorf("a piece begins at %d, want %d", p.Offset, o.next)
	}
	if p.Gap {
		o.gaps++
		o.next = p.NextOffset
		return
	}
	o.data = append(o.data, p.Data...)
	o.next += int64(len(p.Data))
	if p.EOF || p.Error != nil {
		close(o.done)
	}
}

func TestSubscription(t *testing.T) {
	h := serve(t, nil)
	got := &outputs{t: t, done: make(chan struct{})}
	c, id := startProcess(t, h, client.Options{ProcessOutput: got.add})
	h.env().write(first, "before ")
	var zero int64
	if _, err := c.ProcessSubscribe(t.Context(), protocol.ProcessSubscribeParams{SessionID: "s1", ProcessID: id, FromOffset: &zero}); err != nil {
		t.Fatal(err)
	}
	want := []byte("before ")
	for i := range 200 {
		piece := strings.Repeat(string(rune('a'+i%26)), i*100)
		want = append(want, piece...)
		h.env().write(first, piece)
	}
	h.env().exit(first, 0)
	<-got.done
	if !bytes.Equal(got.data, want) || got.gaps != 0 {
		t.Fatalf("%d of %d bytes came, with %d gaps", len(got.data), len(want), got.gaps)
	}
	h.server.mu.Lock()
	defer h.server.mu.Unlock()
	for key, sub := range h.server.subscriptions {
		if sub.ctx.Err() == nil {
			t.Errorf("a subscription to %v is left", key)
		}
	}
}

// TestSlowSubscriber is told of what is no longer kept as a gap, and holds no
// more than its bound in the service meanwhile.
func TestSlowSubscriber(t *testing.T) {
	h := serve(t, nil)
	reading := make(chan struct{})
	got := &outputs{t: t, done: make(chan struct{})}
	var waited bool
	c, id := startProcess(t, h, client.Options{ProcessOutput: func(p protocol.ProcessOutputParams) {
		if !waited {
			<-reading
			waited = true
		}
		got.add(p)
	}})
	var zero int64
	h.env().write(first, "x")
	if _, err := c.ProcessSubscribe(t.Context(), protocol.ProcessSubscribeParams{SessionID: "s1", ProcessID: id, FromOffset: &zero}); err != nil {
		t.Fatal(err)
	}
	const size, kept = 16 << 20, 1 << 20
	for range size / kept {
		h.env().write(first, strings.Repeat("y", kept))
	}
	// The subscription is stuck when it holds all it may.
	limit := int64(protocol.MaxSubscriptionBytes)*4/3 + 64<<10
	poll, deadline := time.NewTicker(time.Millisecond), time.After(patience)
	defer poll.Stop()
	for backlog := int64(0); backlog < limit/2; {
		select {
		case <-poll.C:
		case <-deadline:
			t.Fatalf("only %d bytes wait", backlog)
		}
		if _, backlog = h.server.stream.Backlog(); backlog > limit {
			t.Fatalf("%d bytes wait for a slow client", backlog)
		}
	}
	if _, err := h.env().change(first, "", func(p *doubleProcess) { p.kept = size - kept }); err != nil {
		t.Fatal(err)
	}
	h.env().exit(first, 0)
	close(reading)
	<-got.done
	if got.gaps != 1 || got.next != size+1 {
		t.Fatalf("%d gaps, the end is %d, want 1 and %d", got.gaps, got.next, size+1)
	}
}

func TestUnsubscribe(t *testing.T) {
	h := serve(t, nil)
	c, id := startProcess(t, h, client.Options{ProcessOutput: func(p protocol.ProcessOutputParams) {
		t.Errorf("output after the end of the subscription: %+v", p)
	}})
	p := protocol.ProcessParams{SessionID: "s1", ProcessID: id}
	if _, err := c.ProcessSubscribe(t.Context(), protocol.ProcessSubscribeParams{SessionID: "s1", ProcessID: id}); err != nil {
		t.Fatal(err)
	}
	if err := c.ProcessUnsubscribe(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if err := c.ProcessUnsubscribe(t.Context(), p); err != nil {
		t.Fatalf("ending what has ended: %v", err)
	}
	h.env().write(first, "unheard")
	if _, err := c.ProcessGet(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// TestOutputFollowsTheAnswer of a subscription, however fast the output is.
func TestOutputFollowsTheAnswer(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	p.send(`{"id":3,"method":"process/start","params":{"sessionId":"s1","command":"x"}}`)
	p.expect(`{"id":3,"result":{"process":{"id":"<string pid>","...":""}}}`)
	h.env().write(first, "output")
	for i := range 50 {
		p.send(p.expand(fmt.Sprintf(`{"id":%d,"method":"process/subscribe","params":{"sessionId":"s1","processId":"${pid}","fromOffset":0}}`, 10+i)))
		answered := false
		for seen := false; !seen; {
			msg := p.receive().(map[string]any)
			answered = answered || msg["id"] == float64(10+i)
			seen = msg["method"] == protocol.MethodProcessOutput
		}
		if !answered {
			t.Fatal("output came before the answer")
		}
		if i%2 == 0 {
			continue // the next one replaces it
		}
		p.send(p.expand(fmt.Sprintf(`{"id":%d,"method":"process/unsubscribe","params":{"sessionId":"s1","processId":"${pid}"}}`, 100+i)))
		p.expect(fmt.Sprintf(`{"id":%d,"result":{}}`, 100+i))
	}
}
