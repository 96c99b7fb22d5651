package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A directory is opened where it is, and nothing that a link in its place leads to.
func TestOpenDir(t *testing.T) {
	parent := t.TempDir()
	dir, file := filepath.Join(parent, "dir"), filepath.Join(parent, "file")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	link(t, dir, filepath.Join(parent, "link"))
	link(t, filepath.Join(parent, "none"), filepath.Join(parent, "dangling"))
	root, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Close(); err != nil {
		t.Error(err)
	}
	for name, want := range map[string]error{"link": syscall.ENOTDIR, "file": nil, "dangling": nil, "none": fs.ErrNotExist} {
		root, err := OpenDir(filepath.Join(parent, name))
		if err == nil {
			t.Errorf("%s was opened", name)
			root.Close()
		} else if want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Who opens a workspace may come there through links.
	r, err := Open(filepath.Join(parent, "link"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A root whose path leads elsewhere says so, until it is back.
func TestCheck(t *testing.T) {
	parent := t.TempDir()
	dir, away := filepath.Join(parent, "dir"), filepath.Join(parent, "away")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	r, err := Open(dir)
	must(err)
	defer r.Close()
	must(r.Check())
	must(os.Rename(dir, away))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.WriteFile(dir, nil, 0o600))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.Remove(dir))
	must(os.Mkdir(dir, 0o700))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.Remove(dir))
	link(t, away, dir)
	must(r.Check()) // the same directory, by another way
	must(os.Remove(dir))
	must(os.Rename(away, dir))
	must(r.Check())
	must(os.Remove(dir))
	wantKind(t, r.Check(), tool.EnvironmentLost)
}
