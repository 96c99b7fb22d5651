package engine

import (
	"bytes"
	"strings"
	"sync"
)

// Said keeps the beginning of what a program prints. Its methods may be called
// concurrently.
type Said struct {
	// Max is how much is kept, in bytes.
	Max int

	mu   sync.Mutex
	text bytes.Buffer
}

// Write keeps what there is room for, and takes all.
func (s *Said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p[:min(len(p), s.Max-s.text.Len())])
	return len(p), nil
}

// String is what was kept, without the white space around it.
func (s *Said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.text.String())
}
