//go:build unix

package diskfile

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
	for what, put := range map[string]func(bell, other string) error{
		"nothing":            func(string, string) error { return nil },
		"unwritable":         func(bell, _ string) error { return os.WriteFile(bell, nil, 0o400) },
		"a link":             func(bell, other string) error { return os.Symlink(other, bell) },
		"a link to a device": func(bell, _ string) error { return os.Symlink("/dev/null", bell) },
		"a link to itself":   func(bell, _ string) error { return os.Symlink(bell, bell) },
		"a link nowhere":     func(bell, other string) error { return os.Symlink(other+".none", bell) },
		"a pipe":             func(bell, _ string) error { return unix.Mkfifo(bell, 0o600) },
		"a directory":        func(bell, _ string) error { return os.Mkdir(bell, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			bell := NewBell(t.TempDir(), "tests", slog.New(slog.DiscardHandler))
			other := filepath.Join(t.TempDir(), "other")
			if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), put(bell.File(), other)); err != nil {
				t.Fatal(err)
			}
			bell.Ring()
			if info, err := os.Lstat(bell.File()); err != nil || !info.Mode().IsRegular() || info.Size() != 1 {
				t.Errorf("the bell is %v, %v", info, err)
			}
			if raw, err := os.ReadFile(other); err != nil || string(raw) != "kept" {
				t.Errorf("another file says %q, %v", raw, err)
			}
			if _, err := os.Lstat(other + ".none"); err == nil {
				t.Error("what the link named was made")
			}
		})
	}
}

// A pipe that somebody reads is no bell either.
func TestBellIsNoPipeWithReader(t *testing.T) {
	bell := NewBell(t.TempDir(), "tests", slog.New(slog.DiscardHandler))
	if err := unix.Mkfifo(bell.File(), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(bell.File(), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	bell.Ring()
	if info, err := os.Lstat(bell.File()); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the bell is %v, %v", info, err)
	}
}

// A bell that cannot be written is told of, once, and is nobody's failure.
func TestMuteBellIsTold(t *testing.T) {
	var told bytes.Buffer
	bell := NewBell(t.TempDir(), "tests", slog.New(slog.NewTextHandler(&told, nil)))
	kept := filepath.Join(bell.File(), "kept")
	if err := errors.Join(os.Mkdir(bell.File(), 0o700), os.WriteFile(kept, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	bell.Ring()
	bell.Ring()
	if n := strings.Count(told.String(), "level=WARN"); n != 1 {
		t.Errorf("it was told %d times: %s", n, &told)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Errorf("somebody's file is gone: %v", err)
	}
}
