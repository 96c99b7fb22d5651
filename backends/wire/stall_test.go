package wire

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestStall tells of a piece that is too long in writing, when that is so and no
// sooner, whatever was written before by the same timer.
func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Second
		began := time.Now()
		told := make(chan time.Duration, 1)
		s := newStall(patience, func() { told <- time.Since(began) })
		for range 10 { // a peer that takes something every now and then
			s.begin()
			time.Sleep(patience * 3 / 4)
			s.end()
		}
		time.Sleep(3 * patience) // nothing to write
		s.begin()
		s.end()
		time.Sleep(patience / 2)
		begun := time.Since(began)
		s.begin()
		if got := <-told; got != begun+patience {
			t.Errorf("told after %v, want %v", got, begun+patience)
		}
		s.end()
		time.Sleep(3 * patience)
		select {
		case got := <-told:
			t.Errorf("told again after %v", got)
		default:
		}
	})
}
