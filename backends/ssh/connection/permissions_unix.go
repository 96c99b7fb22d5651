//go:build unix

package connection

import (
	"fmt"
	"os"
	"syscall"
)

// othersMay says why a private key's file is not to be used: OpenSSH takes none of
// the user's own that others may read or write. Who else's file it is has decided
// for themselves who may.
func othersMay(file string) error {
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) != os.Getuid() || info.Mode().Perm()&0o077 == 0 {
		return nil
	}
	return fmt.Errorf("%w: its mode is %04o", errOpen, info.Mode().Perm())
}
