//go:build unix

package endpoint

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOpenPlain(t *testing.T) {
	dir := t.TempDir()
	pipe, read := filepath.Join(dir, "pipe"), filepath.Join(dir, "read")
	for _, p := range []string{pipe, read} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.OpenFile(read, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	t.Chdir(dir) // for the socket, whose path must be short
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	flags := map[string]int{
		"to read":   os.O_RDONLY,
		"to append": os.O_WRONLY | os.O_APPEND | os.O_CREATE,
		"for both":  os.O_RDWR | os.O_APPEND | os.O_CREATE,
	}
	for how, flag := range flags {
		for _, what := range []string{"pipe", "read", "socket", "."} {
			f, err := OpenPlain(filepath.Join(dir, what), flag)
			if err == nil {
				t.Errorf("%s was opened %s", what, how)
				_ = f.Close()
			} else if what != "." && !strings.Contains(err.Error(), what+": it is not a regular file") {
				t.Errorf("%s %s: %v", what, how, err)
			}
		}
	}
	path := filepath.Join(dir, "file")
	if _, err := OpenPlain(path, os.O_RDONLY); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	f, err := OpenPlain(path, os.O_RDWR|os.O_APPEND|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("text"); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 4 {
		t.Errorf("the file is %v, %v", info, err)
	}
}
