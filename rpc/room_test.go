package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestUnreadAnswers asks for more than there is room for and reads nothing. The
// answers that do not fit are not made: their requests wait, one that is
// cancelled is answered, and all others come whole when the client reads.
func TestUnreadAnswers(t *testing.T) {
	h := serve(t, nil)
	p := startRaw(t, h)
	const first, requests = 10, 4 // of which two have room
	h.double.mu.Lock()
	h.files["/w/big"] = []byte(strings.Repeat("0123456789abcdef", protocol.MaxFileBytes/16))
	h.double.mu.Unlock()
	for i := range requests {
		p.send(fmt.Sprintf(`{"id":%d,"method":"fs/readFile","params":{"sessionId":"s1","path":"big"}}`, first+i))
	}
	p.send(fmt.Sprintf(`{"method":"$/cancelRequest","params":{"id":%d}}`, first+requests-1))
	p.send(`{"method":"$/setTrace","params":{"value":"off"}}`) // read when the cancellation was

	h.server.room.mu.Lock()
	taken := h.server.room.taken
	h.server.room.mu.Unlock()
	if taken > maxAnswers {
		t.Errorf("unread answers have %d bytes, at most %d may be", taken, maxAnswers)
	}
	whole, cancelled := 0, 0
	for range requests {
		msg := p.answer()
		if e, ok := msg["error"].(map[string]any); ok {
			if e["code"] != float64(protocol.CodeCancelled) {
				t.Fatalf("a request gets %v", e)
			}
			cancelled++
			continue
		}
		data := msg["result"].(map[string]any)["data"].(string)
		if want := (protocol.MaxFileBytes + 2) / 3 * 4; len(data) != want {
			t.Fatalf("an answer has %d bytes of base64, want %d", len(data), want)
		}
		whole++
	}
	if whole != requests-1 || cancelled != 1 {
		t.Errorf("%d whole answers and %d cancelled ones", whole, cancelled)
	}
	p.send(`{"id":99,"method":"tool/call","params":{"sessionId":"s1","name":"echo","arguments":{}}}`)
	p.expect(`{"id":99,"result":{"...":""}}`)
	h.server.room.mu.Lock()
	defer h.server.room.mu.Unlock()
	if h.server.room.taken != 0 || len(h.server.room.waiting) != 0 {
		t.Errorf("%d bytes stay taken when all has been read", h.server.room.taken)
	}
}

// TestRoom shares in order, also with one that asks for more than there is.
func TestRoom(t *testing.T) {
	var m room
	took := func(n int64) <-chan error {
		done := make(chan error, 1)
		ready := func() int { m.mu.Lock(); defer m.mu.Unlock(); return len(m.waiting) }
		before := ready()
		go func() { done <- m.take(t.Context(), n) }()
		for ready() == before {
		}
		return done
	}
	if err := m.take(t.Context(), maxAnswers-1); err != nil {
		t.Fatal(err)
	}
	huge, small := took(2*maxAnswers), took(1)
	if m.try(1) {
		t.Error("somebody is served before those who came first")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.take(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request gets %v", err)
	}
	m.give(maxAnswers - 1)
	if err := <-huge; err != nil {
		t.Error(err)
	}
	select {
	case <-small:
		t.Error("there is room beside what is larger than all")
	default:
	}
	m.give(2 * maxAnswers)
	if err := <-small; err != nil {
		t.Error(err)
	}
	if m.give(1); m.taken != 0 || !m.try(maxAnswers) {
		t.Errorf("%d bytes stay taken", m.taken)
	}
}
