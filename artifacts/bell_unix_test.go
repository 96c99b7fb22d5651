//go:build unix

package artifacts

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What cannot be written in the place of the bell makes way for one that can, and nothing
// else is written or waited for.
func TestBellIsMadeAnew(t *testing.T) {
	for what, put := range map[string]func(bell string) error{
		"unwritable":          func(bell string) error { return os.WriteFile(bell, nil, 0o400) },
		"a link in the store": func(bell string) error { return os.Symlink("other", bell) },
		"a link out of it":    func(bell string) error { return os.Symlink("/dev/null", bell) },
		"a link nowhere":      func(bell string) error { return os.Symlink("none", bell) },
		"a pipe":              func(bell string) error { return unix.Mkfifo(bell, 0o600) },
		"a directory":         func(bell string) error { return os.Mkdir(bell, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			s, dir, _ := newStore(t)
			other := filepath.Join(dir, "other")
			if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), put(s.Bell())); err != nil {
				t.Fatal(err)
			}
			publish(t, s, "s-1", "a", "1")
			if info, err := os.Lstat(s.Bell()); err != nil || !info.Mode().IsRegular() || info.Size() != 1 {
				t.Errorf("the bell is %v, %v", info, err)
			}
			if raw, err := os.ReadFile(other); err != nil || string(raw) != "kept" {
				t.Errorf("another file says %q, %v", raw, err)
			}
		})
	}
}

// A bell that cannot be written is told of, once, and is nobody's failure.
func TestMuteBellIsTold(t *testing.T) {
	var told bytes.Buffer
	s, err := Open(t.TempDir(), Options{Log: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := errors.Join(os.Mkdir(s.Bell(), 0o700), os.WriteFile(filepath.Join(s.Bell(), "kept"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	publish(t, s, "s-1", "a", "1")
	publish(t, s, "s-1", "b", "2")
	if n := strings.Count(told.String(), "level=WARN"); n != 1 {
		t.Errorf("it was told %d times: %s", n, &told)
	}
}
