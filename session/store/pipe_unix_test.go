//go:build unix

package store

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe in the place of a file is reported; to open it would wait for a writer.
func TestPipe(t *testing.T) {
	s := open(t)
	save(t, s, session("a"))
	file := s.session("a", "binding.json")
	if err := errors.Join(os.Remove(file), unix.Mkfifo(file, 0o600)); err != nil {
		t.Fatal(err)
	}
	var broken *BrokenError
	if _, err := s.Load("a"); !errors.As(err, &broken) || broken.File != file {
		t.Errorf("got %v", err)
	}
	if list, err := s.List(); err != nil || len(list) != 1 || list[0].Err == nil {
		t.Errorf("list %+v, %v", list, err)
	}
}
