package program

import (
	"bytes"
	"strings"
	"sync"
)

// Tail keeps the end of what is written to it, as of what a program prints to standard
// error. Its methods may be called concurrently.
type Tail struct {
	// Max is how much is kept, in bytes.
	Max int

	mu   sync.Mutex
	data []byte
	cut  bool
}

// Write keeps the last bytes of p and of what came before, and takes all.
func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cut = t.cut || len(t.data)+len(p) > t.Max
	t.data = append(t.data, p[max(0, len(p)-t.Max):]...)
	if over := len(t.data) - t.Max; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// Bytes are a copy of what was kept, and whether there was more before it.
func (t *Tail) Bytes() (kept []byte, cut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return bytes.Clone(t.data), t.cut
}

// String is what was kept.
func (t *Tail) String() string {
	kept, _ := t.Bytes()
	return string(kept)
}

// Line is what was kept, on one line.
func (t *Tail) Line() string { return strings.Join(strings.Fields(t.String()), " ") }
