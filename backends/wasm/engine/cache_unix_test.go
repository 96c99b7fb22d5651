//go:build unix

package engine

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in the cache, or a link to one, keeps nobody waiting: neither where a module
// with its metering is, nor where the engine has its machine code.
func TestPipeInCache(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	const sum = "0123456789abcdef"
	if err := c.store("kept", command(0x01)); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(c.dir, "machine-code")
	pipe, link := filepath.Join(below, "code"), c.path(sum)
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	if _, kept := c.load(sum); kept {
		t.Error("a link to a pipe is a module")
	}
	if c, err = openCache(dir); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link} {
		if _, err := os.Lstat(name); !os.IsNotExist(err) {
			t.Fatalf("%s is still there: %v", name, err)
		}
	}
	if _, kept := c.load("kept"); !kept {
		t.Error("a module is gone with the pipe")
	}
}
