package rpc

import (
	"bytes"
	"context"
	"hash/maphash"
	"runtime"
	"sync/atomic"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// Messages are read by one goroutine at a time, which works on what it has read.
// Before it works on a request that takes its time it has another one read on.
// When it is held up by one that was over soon the last time, by a disk or by a
// client that does not read, another one reads on in its place: see relief.

// read reads, and then again whenever it is to read on: the stack of a goroutine
// that has worked on a request is large enough for the next one, and a new one's is
// copied several times before it is.
func (s *server) read() {
	for s.readMessages() {
		if s.spare.Add(1) > maxSpare {
			s.spare.Add(-1)
			return
		}
		select {
		case <-s.readOn:
			s.spare.Add(-1)
		case <-s.ctx.Done():
			return
		}
	}
}

// relieve has another goroutine read on.
func (s *server) relieve() {
	select {
	case s.readOn <- struct{}{}:
	default:
		go s.read()
	}
}

// readMessages takes messages and works on them, until the input ends, when it
// reports false, or another goroutine reads in its place.
func (s *server) readMessages() (relieved bool) {
	for {
		msg, _, err := s.stream.Read(context.Background())
		if err != nil {
			close(s.unread)
			return false
		}
		switch m := msg.(type) {
		case *jsonrpc2.Notification:
			s.notified(m.Method(), m.Params())
		case *jsonrpc2.Call:
			if !s.called(m) {
				return true
			}
		case *jsonrpc2.Response:
			s.asks.answered(m)
		}
	}
}

// called works on a request or sees to it that somebody does, and reports
// whether the caller is still the one who reads.
func (s *server) called(m *jsonrpc2.Call) bool {
	r, err := s.admit(m)
	if err != nil {
		// It fails only when the connection has ended.
		_ = s.stream.Respond(m.ID(), err)
		return true
	}
	params := []byte(m.Params())
	if r.name == protocol.MethodInitialize {
		// What a client sends behind it without waiting for its answer is read
		// when that is done, rather than refused.
		r.run(params)
		return true
	}
	// What has come already is not to wait, and what is long not to be decoded here.
	if len(params) > maxInline || s.stream.Pending() {
		params = bytes.Clone(params)
		go r.run(params)
		return true
	}
	work, prepareErr := r.prepare(params)
	if prepareErr == nil && !r.soon.Load() {
		// Its client mostly waits for the answer, so another goroutine may begin to
		// read a little later, rather than to work on it.
		r.params = bytes.Clone(params)
		s.relieve()
		r.finish(work)
		return false
	}
	turn := s.relief.begin()
	if prepareErr != nil {
		r.answer(nil, prepareErr)
	} else {
		r.finish(work)
	}
	if turn%yieldTurns == 1 {
		// A goroutine that has not given way for 10 ms, and blocks in a system call,
		// has its processor taken. The runtime's monitor then looks for more of that
		// every 20 µs, for some 5 ms, which makes each request take half as long again.
		runtime.Gosched()
	}
	return s.relief.end(turn)
}

// pace remembers which requests were over soon the last time.
type pace struct {
	seed maphash.Seed
	soon [256]atomic.Bool // by the hash of what a request is about
}

func (p *pace) init() { p.seed = maphash.MakeSeed() }

// of is where a request is remembered. Two that share a place share its fate,
// which does no harm.
func (p *pace) of(r *request) *atomic.Bool {
	var h maphash.Hash
	h.SetSeed(p.seed)
	h.WriteString(r.name)
	h.WriteString(r.sessionID)
	h.WriteString(r.tool)
	return &p.soon[h.Sum64()%uint64(len(p.soon))]
}

// note remembers how long a request took.
func (r *request) note(took time.Duration) {
	if soon := took < quickRequest; r.soon.Load() != soon {
		r.soon.Store(soon)
	}
}

// relief is who reads on when the goroutine that reads is held up. It looks at
// intervals rather than being told by each request, which would cost more than
// the request, and sleeps when none come.
type relief struct {
	// turn is odd while the one who reads works on a request; whoever makes it
	// even goes on reading.
	turn  atomic.Uint64
	awake atomic.Bool
	wake  chan struct{}
}

func (l *relief) init() { l.wake = make(chan struct{}, 1) }

// begin says that the one who reads begins to work on a request.
func (l *relief) begin() uint64 {
	turn := l.turn.Add(1)
	if !l.awake.Load() && l.awake.CompareAndSwap(false, true) {
		l.wake <- struct{}{}
	}
	return turn
}

// end says that it is done, and reports whether it is still the one who reads.
func (l *relief) end(turn uint64) bool { return l.turn.CompareAndSwap(turn, turn+1) }

// watch calls read whenever the one who reads has worked on one request for
// longer than reliefInterval, until ctx ends.
func (l *relief) watch(ctx context.Context, read func()) {
	timer := time.NewTimer(reliefInterval)
	defer timer.Stop()
	for {
		select {
		case <-l.wake:
		case <-ctx.Done():
			return
		}
		for still := 0; still < reliefLooks; {
			seen := l.turn.Load()
			timer.Reset(reliefInterval)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
			switch now := l.turn.Load(); {
			case now != seen:
				still = 0
			case now%2 == 0:
				still++
			case l.end(now):
				read()
			}
			if still == reliefLooks {
				l.awake.Store(false)
				// A turn that began just now has not woken anybody.
				if l.turn.Load() != seen && l.awake.CompareAndSwap(false, true) {
					still = 0
				}
			}
		}
	}
}
