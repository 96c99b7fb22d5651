//go:build unix

package endpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A child that is being started has all our descriptors until its program begins.
// It does not keep a lock that was given back.
func TestLockIsNotTheChilds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	l, err := Acquire(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	child, err := unix.Dup(int(l.file.Fd())) // as a fork has it
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(child)
	if err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if held, err := Held(path); held || err != nil {
		t.Errorf("it is still held: %t, %v", held, err)
	}
}

// A lock on a file that was removed while it was waited for is a lock on nothing:
// whoever comes next would have one on the file that comes after.
func TestLockOnARemovedFile(t *testing.T) {
	for what, again := range map[string]bool{"removed": false, "replaced": true} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "session", "lock")
			holder, err := Acquire(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			waiting, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.RemoveAll(filepath.Dir(path)), holder.Unlock()); err != nil {
				t.Fatal(err)
			}
			if again {
				next, err := Acquire(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := next.Unlock(); err != nil {
						t.Error(err)
					}
				})
			}
			if l, err := take(t.Context(), waiting, path); !errors.Is(err, fs.ErrNotExist) {
				t.Fatalf("got %v, %v", l, err)
			}
			if held, err := Held(path); err != nil || held != again {
				t.Errorf("held: %v, %v", held, err)
			}
		})
	}
}
