package rpc

import (
	"context"
	"slices"
	"sync"
)

// room shares maxAnswers bytes among the answers that are being made or wait to
// be written: a client that asks for much and reads nothing must not fill the
// memory. Whoever came first is served first.
type room struct {
	mu      sync.Mutex
	taken   int64
	waiting []*share
}

// share is what one answer waits for.
type share struct {
	bytes int64
	ready chan struct{} // closed when it has them
}

// take takes n bytes, or waits until there are as many or ctx ends. More than
// there are in all can be had when nobody else has any.
func (m *room) take(ctx context.Context, n int64) error {
	if m.try(n) {
		return nil
	}
	m.mu.Lock()
	w := &share{bytes: n, ready: make(chan struct{})}
	m.waiting = append(m.waiting, w)
	m.serve()
	m.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := slices.Index(m.waiting, w); i >= 0 {
		m.waiting = slices.Delete(m.waiting, i, i+1)
	} else {
		m.taken -= n // it came meanwhile
	}
	m.serve()
	return ctx.Err()
}

// try takes n bytes if they can be had at once.
func (m *room) try(n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.waiting) > 0 || !m.fits(n) {
		return false
	}
	m.taken += n
	return true
}

// give gives n bytes back.
func (m *room) give(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken -= n
	m.serve()
}

func (m *room) fits(n int64) bool { return m.taken == 0 || m.taken+n <= maxAnswers }

// serve gives to those who wait, in order. The caller holds mu.
func (m *room) serve() {
	for len(m.waiting) > 0 && m.fits(m.waiting[0].bytes) {
		m.taken += m.waiting[0].bytes
		close(m.waiting[0].ready)
		m.waiting = slices.Delete(m.waiting, 0, 1)
	}
}
