package store

import (
	"errors"
	"os"
	"testing"
	"time"
)

// A mark is the same for the same binding alone, and for none that was only just written.
func TestMark(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	if m := s.Mark("a"); m.Same(m) {
		t.Error("the mark of a binding that was just written is trusted")
	}
	at := time.Now().Add(-time.Hour)
	file := s.session("a", "binding.json")
	aged := func() Mark {
		t.Helper()
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
		return s.Mark("a")
	}
	m := aged()
	if !m.Same(s.Mark("a")) {
		t.Error("the same binding is another one")
	}
	// Another file of the same size and time.
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(file+".new", raw, 0o600), os.Rename(file+".new", file)); err != nil {
		t.Fatal(err)
	}
	if m.Same(aged()) {
		t.Error("another file is the same binding")
	}
	if m = s.Mark("b"); m.Same(m) {
		t.Error("no binding is the same as itself")
	}
}
