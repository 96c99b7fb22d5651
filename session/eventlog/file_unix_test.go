//go:build unix

package eventlog

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// While another service moves the file aside it is not moved a second time, and no
// line is lost.
func TestMovedByOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openFile(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	other, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(other.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	write := func(line string) {
		t.Helper()
		if err := l.write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	write("one line")
	write("two lines")
	if _, err := os.Lstat(path + ".1"); err == nil {
		t.Error("it was moved under whoever moves it")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	write("three")
	old, err := os.ReadFile(path + ".1")
	if err != nil {
		t.Fatal(err)
	}
	now, err := os.ReadFile(path)
	if err != nil || strings.Count(string(old), "\n") != 2 || string(now) != "three\n" {
		t.Errorf("%q, %q, %v", old, now, err)
	}
}

// What somebody else moved aside or removed is not written to any more.
func TestMovedByOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openFile(path, 1000)
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for _, c := range []struct {
		line string
		move func() error
	}{
		{"first", func() error { return os.Rename(path, path+".old") }},
		{"second", func() error {
			if now, err := os.ReadFile(path); string(now) != "second\n" {
				t.Errorf("%q, %v", now, err)
			}
			return os.Remove(path)
		}},
		{"third", func() error { return os.WriteFile(path+".new", []byte("of another\n"), 0o600) }},
		{"fourth", func() error { return os.Rename(path+".new", path) }},
		{"fifth", func() error { return nil }},
	} {
		if err := l.write([]byte(c.line + "\n")); err != nil {
			t.Fatal(err)
		}
		l.torn = true // as after a write of a part, which a new file does not end
		if err := c.move(); err != nil {
			t.Fatal(err)
		}
	}
	old, err := os.ReadFile(path + ".old")
	if err != nil || string(old) != "first\n" {
		t.Errorf("%q, %v", old, err)
	}
	now, err := os.ReadFile(path)
	if err != nil || string(now) != "of another\nfifth\n" {
		t.Errorf("%q, %v", now, err)
	}
}
