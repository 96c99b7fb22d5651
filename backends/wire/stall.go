package wire

import (
	"sync"
	"time"
)

// stall calls tell when one piece has been in writing for longer than patience. Its timer
// is not set and stopped for each piece, which wakes a thread and costs as much as the
// write: once set it runs on, and rests when it finds nothing in writing.
type stall struct {
	patience time.Duration
	tell     func()
	timer    *time.Timer

	mu      sync.Mutex
	running bool      // the timer
	began   time.Time // the piece that is in writing; zero for none
}

// newStall makes one that calls tell, which must make the write fail.
func newStall(patience time.Duration, tell func()) *stall {
	s := &stall{patience: patience, tell: tell}
	s.timer = time.AfterFunc(time.Hour, s.look)
	s.timer.Stop()
	return s
}

// begin says that a piece begins to be written.
func (s *stall) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Now()
	if !s.running {
		s.running = true
		s.timer.Reset(s.patience)
	}
}

// end says that it is written, or failed.
func (s *stall) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Time{}
}

// look is called by the timer.
func (s *stall) look() {
	if s.over() {
		s.tell()
	}
}

// over reports whether the piece in writing has taken too long, and else sees to
// it that somebody looks again when it will have.
func (s *stall) over() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	left := s.patience - time.Since(s.began)
	if !s.began.IsZero() && left > 0 {
		s.timer.Reset(left)
		return false
	}
	s.running = false
	return !s.began.IsZero()
}
