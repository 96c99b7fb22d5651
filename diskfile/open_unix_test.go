//go:build unix

package diskfile

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"
)

// A socket is known for one whatever the system says of it.
func TestNotOpened(t *testing.T) {
	for _, err := range []error{syscall.ENXIO, syscall.EOPNOTSUPP} {
		_, _, got := OpenRegular(func(int) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: "x", Err: err} })
		if !errors.Is(got, ErrNotRegular) {
			t.Errorf("%v: %v", err, got)
		}
	}
}

// What stands in the place of a file is refused and not waited for, however it is opened.
func TestOpenWaitsForNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // for the socket, whose path must be short
	for _, pipe := range []string{"pipe", "read"} {
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reader, err := os.OpenFile("read", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = reader.Close() })
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if err := errors.Join(os.Mkdir("directory", 0o700), os.Symlink("pipe", "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	with := func(flags int) func(string) (*os.File, fs.FileInfo, error) {
		return func(name string) (*os.File, fs.FileInfo, error) {
			return OpenRegular(func(flag int) (*os.File, error) { return os.OpenFile(name, flag|flags, 0o600) })
		}
	}
	for how, open := range map[string]func(string) (*os.File, fs.FileInfo, error){
		"by name":   Open,
		"in a root": func(name string) (*os.File, fs.FileInfo, error) { return OpenIn(root, name) },
		"to append": with(os.O_WRONLY | os.O_APPEND | os.O_CREATE),
		"for both":  with(os.O_RDWR | os.O_APPEND | os.O_CREATE),
	} {
		t.Run(how, func(t *testing.T) {
			for _, what := range []string{"pipe", "read", "socket", "link", "directory"} {
				f, _, err := open(what)
				if err == nil {
					t.Errorf("the %s was opened", what)
					_ = f.Close()
				} else if !errors.Is(err, ErrNotRegular) && !errors.Is(err, syscall.EISDIR) {
					t.Errorf("the %s: %v", what, err)
				}
			}
			if err := os.WriteFile("file", []byte("text"), 0o600); err != nil {
				t.Fatal(err)
			}
			f, info, err := open("file")
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() != 4 {
				t.Errorf("it is %d bytes large", info.Size())
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, _, err := Open("missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
