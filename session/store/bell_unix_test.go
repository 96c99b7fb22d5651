//go:build unix

package store

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/diskfile"
)

// What cannot be written in the place of the bell makes way for one that can, and nothing
// else is written or waited for.
func TestBellIsMadeAnew(t *testing.T) {
	for what, put := range map[string]func(bell, other string) error{
		"unwritable":       func(bell, _ string) error { return os.WriteFile(bell, nil, 0o400) },
		"a link":           func(bell, other string) error { return os.Symlink(other, bell) },
		"a link to itself": func(bell, _ string) error { return os.Symlink(bell, bell) },
		"a link nowhere":   func(bell, other string) error { return os.Symlink(other+".none", bell) },
		"a pipe":           func(bell, _ string) error { return unix.Mkfifo(bell, 0o600) },
		"a directory":      func(bell, _ string) error { return os.Mkdir(bell, 0o700) },
	} {
		t.Run(what, func(t *testing.T) {
			s := open(t)
			other := filepath.Join(t.TempDir(), "other")
			if err := errors.Join(os.WriteFile(other, []byte("kept"), 0o600), put(s.Bell(), other)); err != nil {
				t.Fatal(err)
			}
			s.Ring()
			if info, err := os.Lstat(s.Bell()); err != nil || !info.Mode().IsRegular() || info.Size() != 1 {
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
	s := open(t)
	if err := unix.Mkfifo(s.Bell(), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(s.Bell(), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	s.Ring()
	if info, err := os.Lstat(s.Bell()); err != nil || !info.Mode().IsRegular() {
		t.Errorf("the bell is %v, %v", info, err)
	}
}

// A bell that cannot be written is told of, once, and is nobody's failure.
func TestMuteBellIsTold(t *testing.T) {
	var told bytes.Buffer
	dir := t.TempDir()
	s, err := Open(dir, slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	kept := filepath.Join(s.Bell(), "kept")
	if err := errors.Join(os.Mkdir(s.Bell(), 0o700), os.WriteFile(kept, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	s.Ring()
	s.Ring()
	if n := strings.Count(told.String(), "level=WARN"); n != 1 {
		t.Errorf("it was told %d times: %s", n, &told)
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Errorf("somebody's file is gone: %v", err)
	}
}

// Who has a session can be seen where nothing may be written, whoever has it and however
// many look.
func TestOwnerIsOnlyRead(t *testing.T) {
	s := open(t)
	l, err := s.LockSession(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	file := s.session("a", "lock")
	if err := os.Chmod(file, 0o400); err != nil {
		t.Fatal(err)
	}
	if pid, err := s.Owner("a"); err != nil || pid != os.Getpid() {
		t.Errorf("the owner is %d, %v", pid, err)
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(file, 0o600), os.WriteFile(file, []byte("1"), 0o600), os.Chmod(file, 0o400)); err != nil {
		t.Fatal(err)
	}
	looks, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer looks.Close()
	if free, err := diskfile.TryShared(looks); err != nil || !free {
		t.Fatalf("it is free: %t, %v", free, err)
	}
	if pid, err := s.Owner("a"); err != nil || pid != 0 {
		t.Errorf("what was left is taken for %d, %v", pid, err)
	}
}
