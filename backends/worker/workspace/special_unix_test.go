//go:build unix

package workspace

import (
	"errors"
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestSpecialFilesAreRefusedAtOnce(t *testing.T) {
	r := open(t, nil)
	if err := syscall.Mkfifo(filepath.Join(r.Dir(), "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Open("pipe"); !errors.Is(err, ErrSpecial) {
		t.Errorf("Open: %v", err)
	}
	if _, err := r.Write("pipe", nil, WriteOptions{}); !errors.Is(err, ErrSpecial) {
		t.Errorf("Write: %v", err)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(r.Dir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, _, err := r.Open("socket"); !errors.Is(err, ErrSpecial) {
		t.Errorf("Open of a socket: %v", err)
	}
	if _, err := r.OpenDir("pipe"); err == nil {
		t.Error("a pipe is a directory")
	}
	if _, err := r.Write("pipe/x", nil, WriteOptions{}); err == nil {
		t.Error("a pipe holds files")
	}
}
