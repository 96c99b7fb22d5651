package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/diskfile"
)

// A file that was changed is not said to be as it was.
func TestUnsynced(t *testing.T) {
	err := written("config.json", errors.Join(diskfile.ErrNotSynced, fs.ErrPermission))
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint, "was changed") || strings.Contains(e.Hint, "as it was") {
		t.Errorf("got %+v", err)
	}
	err = written("config.json", fs.ErrPermission)
	if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(e.Hint, "as it was") {
		t.Errorf("got %+v", err)
	}
	if err := written("config.json", nil); err != nil {
		t.Error(err)
	}
}

// A directory that may be written to and not be read cannot be synced.
func TestSetDefaultUnsynced(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "config.json")
	const before = `{"execution_environments": {"profiles": {"box": {"backend": "docker", "image": "a"}}}}`
	if err := errors.Join(os.WriteFile(file, []byte(before), 0o600), os.Chmod(dir, 0o300)); err != nil {
		t.Fatal(err)
	}
	d, unread := os.Open(dir)
	if unread == nil {
		unread = d.Close() // root reads it all the same
	}
	err := SetDefault(file, "box")
	if e, ok := errors.AsType[*Error](err); ok != (unread != nil) || ok && !strings.Contains(e.Hint, "was changed") {
		t.Errorf("got %+v", err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(file); err != nil || c.Default != "box" {
		t.Errorf("default %q, %v", c.Default, err)
	}
}
