//go:build unix

package diskfile

import (
	"io/fs"
	"os"
	"syscall"
	"testing"
)

// strangers is a file of a user that is not the one who runs the test.
type strangers struct{ fs.FileInfo }

func (strangers) Sys() any { return &syscall.Stat_t{Uid: uint32(os.Geteuid()) + 1} }

func TestOwnedByUs(t *testing.T) {
	info, err := os.Stat(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if !OwnedByUs(info) {
		t.Error("a directory that we made is not ours")
	}
	if OwnedByUs(strangers{info}) {
		t.Error("somebody else's directory is ours")
	}
}
