//go:build unix

package site

import (
	"io/fs"
	"os"
	"syscall"
)

// owned reports whether the file is this user's.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}
