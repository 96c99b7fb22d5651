package diskfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// only says that the directory has nothing but the file.
func only(t *testing.T, file, content string, perm fs.FileMode) {
	t.Helper()
	if raw, err := os.ReadFile(file); err != nil || string(raw) != content {
		t.Errorf("it says %q, %v", raw, err)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != perm {
		t.Errorf("it is %v, %v", info, err)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("beside it there are %v, %v", left, err)
	}
}

func TestWriteFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	for _, c := range []struct {
		content string
		perm    fs.FileMode
	}{{"first", 0o600}, {"second", 0o666}, {"", 0o600}} {
		if err := WriteFile(file, []byte(c.content), c.perm); err != nil {
			t.Fatal(err)
		}
		only(t, file, c.content, c.perm)
	}
}

// A replacement that fails leaves nothing half-written.
func TestFailedReplacement(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.Mkdir(file, 0o700); err != nil { // a rename cannot replace it
		t.Fatal(err)
	}
	if err := WriteFile(file, []byte("x"), 0o600); err == nil {
		t.Fatal("no error")
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// What is there already is not replaced by what is to be new.
func TestCreateFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := CreateFile(file, []byte("first")); err != nil {
		t.Fatal(err)
	}
	if err := CreateFile(file, []byte("second")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v", err)
	}
	only(t, file, "first", 0o600)
}

// What was written and may be taken back by a crash is told to be that.
func TestSynced(t *testing.T) {
	if err := synced(fs.ErrPermission); !errors.Is(err, ErrNotSynced) || !errors.Is(err, fs.ErrPermission) {
		t.Errorf("got %v", err)
	}
	if err := synced(nil); err != nil {
		t.Error(err)
	}
}
