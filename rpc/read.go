package rpc

import (
	"bytes"
	"context"

	"go.lsp.dev/jsonrpc2"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// Messages are read by one goroutine at a time, which works on what it has read.
// Before it works on a request that takes its time it has another one read on.
// When it is held up by one that was over soon the last time, by a disk or by a
// client that does not read, another one reads on in its place: see [pace.Relief].

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
	if prepareErr == nil && !r.kind.Soon() {
		// Its client mostly waits for the answer, so another goroutine may begin to
		// read a little later, rather than to work on it.
		r.params = bytes.Clone(params)
		s.relieve()
		r.finish(work)
		return false
	}
	turn := s.relief.Begin()
	if prepareErr != nil {
		r.answer(nil, prepareErr)
	} else {
		r.finish(work)
	}
	return s.relief.End(turn)
}
