package process

import (
	"fmt"
	"sync"
	"unicode/utf8"
)

// capture keeps the first and the last bytes of a foreground command's stdout
// or stderr.
type capture struct {
	mu    sync.Mutex
	limit int    // of head and of tail, in bytes
	head  []byte // the first bytes
	tail  []byte // the last ones after head: a ring once it is full
	at    int    // where the ring begins
	total int64
}

func newCapture(limit int) *capture { return &capture{limit: limit} }

// Write takes all of p.
func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	k := min(len(p), c.limit-len(c.head))
	c.head = append(c.head, p[:k]...)
	p = p[k:]
	if len(p) > c.limit {
		p = p[len(p)-c.limit:]
	}
	k = min(len(p), c.limit-len(c.tail))
	c.tail = append(c.tail, p[:k]...)
	for p = p[k:]; len(p) > 0; p = p[k:] {
		k = copy(c.tail[c.at:], p)
		c.at = (c.at + k) % c.limit
	}
	return n, nil
}

// discard frees what is kept and keeps no more.
func (c *capture) discard() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.limit, c.head, c.tail, c.at = 0, nil, nil, 0
}

// size is how many bytes came.
func (c *capture) size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// end is what is kept of the last n bytes.
func (c *capture) end(n int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.keptLocked()
	return all[max(0, len(all)-n):]
}

func (c *capture) keptLocked() []byte {
	all := make([]byte, 0, len(c.head)+len(c.tail))
	all = append(all, c.head...)
	all = append(all, c.tail[c.at:]...)
	return append(all, c.tail[:c.at]...)
}

// result is the output in at most limit bytes: all of it, or both ends with a
// line between them that tells how much is missing, or its beginning where that
// line has no room. Characters stay whole.
func (c *capture) result(limit int) (out []byte, truncated bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.keptLocked()
	if c.total <= int64(limit) && int64(len(all)) == c.total {
		return all, false
	}
	gap := func(n int64) string { return fmt.Sprintf("\n[%d bytes left out]\n", n) }
	room := min(limit, len(all)) - len(gap(c.total))
	if room < 2 {
		return wholeEnd(c.head[:min(limit, len(c.head))]), true
	}
	head := wholeEnd(all[:room/2])
	tail := wholeStart(all[len(all)-(room-room/2):])
	out = append(make([]byte, 0, limit), head...)
	out = append(out, gap(c.total-int64(len(head)+len(tail)))...)
	return append(out, tail...), true
}

// wholeEnd drops a character that is cut at the end of p.
func wholeEnd(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if b := p[len(p)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// wholeStart drops the rest of a character that is cut at the start of p.
func wholeStart(p []byte) []byte {
	for i := 0; i < utf8.UTFMax-1 && i < len(p); i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// share divides limit among two outputs: the smaller one first, up to half or
// what the other leaves.
func share(limit int, a, b int64) (int, int) {
	half := int64(limit / 2)
	switch {
	case a <= half:
		return int(a), int(min(b, int64(limit)-a))
	case b <= half:
		return int(int64(limit) - b), int(b)
	default:
		return int(half), int(half)
	}
}
