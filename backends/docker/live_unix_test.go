//go:build unix

package docker

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByCaller reports whether a file belongs to this process's user.
func ownedByCaller(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
