//go:build unix

package diskfile

import (
	"io/fs"
	"os"
	"syscall"
)

// OwnedByUs reports whether the user that we run as owns the file. In a directory where
// everybody may write, a name alone says nothing.
func OwnedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
