//go:build unix

package config

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// What can be opened and is no file is not waited for: it is judged as it was opened, so
// that none can be put in the place of a file that was judged.
func TestNoFile(t *testing.T) {
	for what, put := range map[string]func(name string) error{
		"a pipe":      func(name string) error { return unix.Mkfifo(name, 0o600) },
		"a directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"a socket": func(name string) error {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name})
			if err != nil {
				return err
			}
			l.SetUnlinkOnClose(false)
			return l.Close()
		},
		"a link to a pipe": func(name string) error {
			return errors.Join(unix.Mkfifo(name+".pipe", 0o600), os.Symlink(filepath.Base(name)+".pipe", name))
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, ProjectFile)
			if err := put(name); err != nil {
				t.Fatal(err)
			}
			_, ofProject := LoadProject(dir, Empty())
			_, ofUser := Load(name)
			for _, err := range []error{ofProject, ofUser, replace(name, nil, nil)} {
				var e *Error
				if !errors.As(err, &e) || !strings.Contains(e.Message, "is not a regular file") {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}
