//go:build unix

package tools

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestReadSpecial(t *testing.T) {
	b := newBench(t, nil)
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.refused("device, pipe or socket", "read_file", args{"path": "pipe"})
	b.refused("device, pipe or socket", "write_file", args{"path": "pipe", "content": ""})
	b.refused("device, pipe or socket", "present_artifact", args{"path": "pipe"})
}
