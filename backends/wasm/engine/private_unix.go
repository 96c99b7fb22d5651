//go:build unix

package engine

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// private refuses a directory that somebody else owns or can write to or read, or that
// is closed to its owner.
func private(info fs.FileInfo) error {
	if err := checkDirectory(info); err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("it belongs to the user %d", st.Uid)
	}
	switch perm := info.Mode().Perm(); {
	case perm&0o077 != 0:
		return fmt.Errorf("its mode is %#o, and others must have no rights there", perm)
	case perm != 0o700:
		return fmt.Errorf("its mode is %#o, and its owner must have all rights there", perm)
	}
	return nil
}
