package pace

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	m := NewMemory(time.Millisecond)
	k := m.Of("tool/call", "s-1", "read_file")
	if k.Soon() {
		t.Error("what was never run is soon over")
	}
	for _, test := range []struct {
		took time.Duration
		soon bool
	}{{time.Millisecond - 1, true}, {time.Millisecond, false}, {0, true}, {time.Second, false}} {
		if k.Took(test.took); k.Soon() != test.soon {
			t.Errorf("after %v: %v", test.took, k.Soon())
		}
	}
	k.Took(0)
	if !m.Of("tool/call", "s-1", "read_file").Soon() {
		t.Error("the same kind is another one")
	}
	others := 0
	for _, name := range []string{"bash", "grep", "glob", "git"} {
		if m.Of("tool/call", "s-1", name).Soon() {
			others++
		}
	}
	if others == 4 {
		t.Error("every kind is the same one")
	}
}

// A turn that ends by itself goes on reading; one that takes long is taken over
// once, whatever comes between.
func TestRelief(t *testing.T) {
	l := NewRelief()
	done, ended := make(chan struct{}), make(chan struct{})
	taken := make(chan struct{}, 10)
	go func() {
		defer close(ended)
		l.Watch(done, func() { taken <- struct{}{} })
	}()
	for range 1000 {
		if turn := l.Begin(); !l.End(turn) {
			<-taken // the machine was slow
		}
	}
	for range 3 {
		turn := l.Begin()
		<-taken
		if l.End(turn) {
			t.Error("two read at once")
		}
	}
	close(done)
	<-ended
	if len(taken) > 0 {
		t.Error("a turn was taken over twice")
	}
}
