package remote

import (
	"testing"
	"testing/synctest"
	"time"
)

// A far end that dies of each connection, under a process that it says runs, is left
// alone more and more; whoever wants it waits for none of that. A connection that has
// lasted is made again at once.
func TestShortConnectionsAreNotMadeAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFar(ourCaps...)
		f.list(running("p1"))
		e := open(t, f, binding(), Options{})
		lose := func() { f.cut(); synctest.Wait() }
		lose()
		if n := f.count(&f.dialled); n != 2 {
			t.Errorf("dialled %d times after the first loss", n)
		}
		for begun := time.Now(); time.Since(begun) < time.Hour; time.Sleep(10 * time.Millisecond) {
			if e.conn.Load() != nil {
				lose()
			}
		}
		if n := f.count(&f.dialled); n < 60 || n > 80 {
			t.Errorf("dialled %d times in an hour", n)
		}
		before := time.Now()
		if _, err := e.Processes().List(t.Context()); err != nil {
			t.Error(err)
		}
		if waited := time.Since(before); waited > 0 {
			t.Errorf("who wants it has waited for %v", waited)
		}
		time.Sleep(steady)
		lose()
		if e.conn.Load() == nil {
			t.Error("a connection that has lasted was not made again at once")
		}
		// What rests is let go of at once, and does not begin to connect for that.
		lose()
		lose()
		events := e.Events().Subscribe()
		if e.conn.Load() != nil {
			t.Error("it does not rest")
		}
		before = time.Now()
		if err := e.Detach(t.Context()); err != nil || time.Since(before) > 0 {
			t.Errorf("let go of after %v: %v", time.Since(before), err)
		}
		for {
			event, err := events.Next(t.Context())
			if err != nil {
				break
			}
			if event.State != nil {
				t.Errorf("told %s", event.State.State)
			}
		}
	})
}
