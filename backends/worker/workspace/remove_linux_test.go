package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRemoveAll: directories go also where nobody may write them, and however many
// are in each other.
func TestRemoveAll(t *testing.T) {
	parent := t.TempDir()
	root, err := os.OpenRoot(parent)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := root.Mkdir("x", 0o700); err != nil {
		t.Fatal(err)
	}
	at, err := root.OpenRoot("x")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 * removeDepth {
		if err := errors.Join(at.Mkdir("d", 0o700), at.WriteFile("f", nil, 0o400)); err != nil {
			t.Fatal(err)
		}
		below, err := at.OpenRoot("d")
		if err == nil && i%(removeDepth/2) == 0 {
			err = at.Chmod(".", 0)
		}
		if err := errors.Join(err, at.Close()); err != nil {
			t.Fatal(err)
		}
		at = below
	}
	at.Close()
	// Root would remove them as they are, and so is given them as others need them.
	if err := flatten(root, "x"); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(parent, func(p string, d os.DirEntry, err error) error {
		if err != nil || !d.IsDir() || p == parent {
			return err
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%v, %v", info, err)
		}
		if strings.Count(p[len(parent):], "/") > removeDepth+3 {
			t.Fatal("it is as deep as it was")
		}
		return nil
	})
	if err := errors.Join(err, RemoveAll(root, "x")); err != nil {
		t.Error(err)
	}
	if _, err := root.Stat("x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is left: %v", err)
	}
}

func TestRemove(t *testing.T) {
	parent := t.TempDir()
	outside := filepath.Join(parent, "outside")
	shut := filepath.Join(parent, "shut")
	err := errors.Join(
		os.MkdirAll(filepath.Join(shut, "in", "it"), 0o700), os.Mkdir(outside, 0o500),
		os.Symlink(outside, filepath.Join(shut, "in", "it", "link")),
		os.Chmod(filepath.Join(shut, "in"), 0o500), os.Chmod(shut, 0),
		os.WriteFile(filepath.Join(parent, "file"), nil, 0o400),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shut", "file", "missing", "missing/too"} {
		if err := Remove(filepath.Join(parent, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	left, err := os.ReadDir(parent)
	if err != nil || len(left) != 1 || left[0].Name() != "outside" {
		t.Errorf("left: %v, %v", left, err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link leads to: %v, %v", info, err)
	}
}
