package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fresh is the body of a _start that traps where its memory has been written before,
// and writes it.
var fresh = []byte{
	0x41, 0x00, 0x28, 0x02, 0x00, 0x04, 0x40, 0x00, 0x0b, // if i32.load(0) { unreachable }
	0x41, 0x00, 0x41, 0x01, 0x36, 0x02, 0x00, // i32.store(0, 1)
}

// begun is a module whose start function, which an engine runs when it makes an
// instance, writes memory, and whose _start traps where it has not.
func begun() []byte {
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x04\x01\x60\x00\x00"+"\x03\x03\x02\x00\x00"+"\x05\x03\x01\x00\x01"+
		"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00"+"\x08\x01\x01"),
		[]byte{0x0a, 24, 2, 12, 0, 0x41, 0x00, 0x28, 0x02, 0x00, 0x45, 0x04, 0x40, 0x00, 0x0b, 0x0b},
		[]byte{9, 0, 0x41, 0x00, 0x41, 0x01, 0x36, 0x02, 0x00, 0x0b})
}

// setUp is a server that has been told what it needs.
func setUp(t *testing.T) *server {
	t.Helper()
	s := newServer()
	if _, err := s.setup(t.Context(), Setup{MemoryPages: 16}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(context.Background()); err != nil {
			t.Error(err)
		}
		for _, m := range s.state.modules.all {
			if m.users != 0 {
				t.Errorf("a module is said to be in use by %d", m.users)
			}
		}
	})
	return s
}

// spareOf is the spare for a run; nil for none. It has been made.
func (s *server) spareOf(o Run) *spare {
	sp := &s.state.spares
	sp.mu.Lock()
	one := sp.all[spareKey(o)]
	sp.mu.Unlock()
	if one != nil {
		<-one.done
	}
	return one
}

// Every run has an instance of its own, made ahead or not, and to the guest it is the
// same: so much memory, so much fuel, and nothing of another run.
func TestSpare(t *testing.T) {
	for name, module := range map[string][]byte{"fresh": command(fresh...), "with a start function": begun()} {
		t.Run(name, func(t *testing.T) {
			s := setUp(t)
			o := asked(t, module)
			var first Outcome
			var before *spare
			for i := range 4 {
				out, _, err := s.run(t.Context(), o, nil)
				if err != nil || out.Ending != Exited {
					t.Fatalf("run %d: %+v, %v", i, out, err)
				}
				if out.Duration = 0; i == 0 {
					first = out
				} else if out != first {
					t.Errorf("run %d is %+v, and the first was %+v", i, out, first)
				}
				one := s.spareOf(o)
				if one == nil {
					t.Fatalf("after run %d there is no spare", i)
				}
				if name == "fresh" && (one.err != nil || one == before) {
					t.Errorf("the spare after run %d: %v, the same as before: %v", i, one.err, one == before)
				}
				if name != "fresh" && (one.err == nil || i > 0 && one != before) {
					t.Errorf("an instance was made of which something runs: %v", one.err)
				}
				before = one
			}
			o.Fuel = 3
			if out, _, err := s.run(t.Context(), o, nil); err != nil || out.Ending != OutOfFuel {
				t.Errorf("with less fuel: %+v, %v", out, err)
			}
		})
	}
}

// A spare is for a run that sees the same of the world.
func TestSpareKey(t *testing.T) {
	o := Run{SHA256: "a", Args: []string{"x"}, Environment: map[string]string{"A": "b"}, MemoryPages: 1, Fuel: 1, Timeout: 1, MaxOutput: 1, Truncate: true}
	key := spareKey(o)
	for name, change := range map[string]func(*Run){
		"module": func(r *Run) { r.SHA256 = "b" }, "arguments": func(r *Run) { r.Args = []string{"y"} },
		"environment": func(r *Run) { r.Environment = nil }, "memory": func(r *Run) { r.MemoryPages = 2 },
		"directories": func(r *Run) { r.ReadOnly = true }, "clock": func(r *Run) { r.Deterministic = true },
		"own directories": func(r *Run) { r.Mounts = []Mount{{Host: "/"}} },
	} {
		other := o
		if change(&other); spareKey(other) == key {
			t.Errorf("another %s makes no difference", name)
		}
	}
	other := Run{SHA256: "a", Args: []string{"x"}, Environment: map[string]string{"A": "b"}, MemoryPages: 1, Fuel: 2, Timeout: 2, MaxOutput: 2, Path: "/p"}
	if spareKey(other) != key {
		t.Error("what a run is told when it begins makes a difference")
	}
}

// Runs at once share no instance, and there are never many spares.
func TestSparesAreFew(t *testing.T) {
	s := setUp(t)
	o := asked(t, command(fresh...))
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			o := o
			o.Args = []string{strconv.Itoa(i % (maxSpares + 2))}
			if out, _, err := s.run(t.Context(), o, nil); err != nil || out.Ending != Exited {
				t.Errorf("%+v, %v", out, err)
			}
		})
	}
	all.Wait()
	if n := len(s.state.spares.all); n != maxSpares {
		t.Errorf("there are %d spares", n)
	}
}

// The oldest goes first, and one that nobody uses goes by itself.
func TestSparesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &spares{all: map[string]*spare{}}
		var mu sync.Mutex
		gone := map[string]bool{}
		released := func(key string) bool {
			mu.Lock()
			defer mu.Unlock()
			return gone[key]
		}
		keep := func(key string, err error) {
			s.keep(key, func() {
				mu.Lock()
				defer mu.Unlock()
				gone[key] = true
			}, func(context.Context, *guest) error { return err }, Run{MemoryPages: 1})
			synctest.Wait()
		}
		keep("bad", errors.New("none"))
		for i := range maxSpares {
			keep(strconv.Itoa(i), nil)
			time.Sleep(spareFor / 8)
		}
		if s.take(t.Context(), "bad") != nil || !released("bad") || len(s.all) != maxSpares {
			t.Errorf("the oldest is there: %v", slices.Collect(maps.Keys(s.all)))
		}
		if s.take(t.Context(), "1") == nil || s.take(t.Context(), "1") != nil || !released("1") {
			t.Error("one was not taken, or twice")
		}
		time.Sleep(spareFor / 2)
		synctest.Wait()
		if s.take(t.Context(), "0") != nil || !released("0") || s.take(t.Context(), "2") == nil {
			t.Errorf("after a time there are %v", slices.Collect(maps.Keys(s.all)))
		}
		s.close()
		keep("late", nil)
		if !released("3") || !released("late") || len(s.all) != 0 {
			t.Errorf("after the end: %v", gone)
		}
	})
}
