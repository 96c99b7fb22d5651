package diskfile

import (
	"os"
	"path/filepath"
	"testing"
)

// A lock is of one opening of the file. Whoever looks is in nobody's way who looks too, and
// what the file holds can be read all the while.
func TestLock(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	if err := os.WriteFile(name, []byte("pid"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(flag int) *os.File {
		t.Helper()
		f, err := os.OpenFile(name, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	owner, other := open(os.O_RDWR), open(os.O_RDWR)
	one, two := open(os.O_RDONLY), open(os.O_RDONLY)
	try := func(how string, take func(*os.File) (bool, error), f *os.File, want bool) {
		t.Helper()
		if got, err := take(f); err != nil || got != want {
			t.Errorf("%s: %t, %v", how, got, err)
		}
	}
	give := func(f *os.File) {
		t.Helper()
		if err := Unlock(f); err != nil {
			t.Error(err)
		}
	}
	try("the first", TryLock, owner, true)
	try("another", TryLock, other, false)
	try("a look at what is held", TryShared, one, false)
	if held, err := os.ReadFile(name); err != nil || string(held) != "pid" {
		t.Errorf("the locked file says %q, %v", held, err)
	}
	give(owner)
	try("a look", TryShared, one, true)
	try("another look", TryShared, two, true)
	try("one while others look", TryLock, other, false)
	give(one)
	give(two)
	try("one after all", TryLock, other, true)
	give(other)
}
