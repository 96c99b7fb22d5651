//go:build unix

package endpoint

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func checkPrivate(dir string, info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("the socket directory %q has mode %#o: others may enter it; it must be 0700", dir, mode)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the socket directory %q belongs to user %d, not to %d", dir, st.Uid, os.Geteuid())
	}
	return nil
}
