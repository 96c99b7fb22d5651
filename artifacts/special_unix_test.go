//go:build unix

package artifacts

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A pipe in the place of a file is not waited for: a record is left out, a content
// cannot be read.
func TestPipesInTheStore(t *testing.T) {
	s, dir, _ := newStore(t)
	a, b := publish(t, s, "s-1", "a", "1"), publish(t, s, "s-1", "b", "2")
	for _, path := range []string{recordPath("s-1", a.ID, "a"), blobPath(strings.TrimPrefix(b.ID, idPrefix))} {
		path = filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.List("s-1"); err != nil || len(got) != 1 || got[0].ID != b.ID {
		t.Errorf("listed %v, %v", got, err)
	}
	if _, _, err := s.Read(b.ID, 0, 1); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("read: %v", err)
	}
}
