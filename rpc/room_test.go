package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
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
	for whole+cancelled < requests {
		// To decode that much takes long under the race detector.
		switch n, begins := p.skip(); {
		case n > protocol.MaxFileBytes/3*4:
			whole++
		case strings.Contains(begins, fmt.Sprint(`"code":`, int(protocol.CodeCancelled))):
			cancelled++
		case !strings.Contains(begins, `"method":`):
			t.Fatalf("a request gets %s", begins)
		}
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

// skip takes the next message undecoded and returns its length and how it begins.
func (p *player) skip() (n int, begins string) {
	header, err := p.in.ReadString('\n')
	if err == nil {
		n, err = strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(header, "Content-Length: ")))
	}
	if err == nil {
		_, err = p.in.Discard(len("\r\n"))
	}
	head := make([]byte, min(n, 128))
	if err == nil {
		_, err = io.ReadFull(p.in, head)
	}
	if err == nil {
		_, err = p.in.Discard(n - len(head))
	}
	if err != nil {
		p.Fatal(err)
	}
	return n, string(head)
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
