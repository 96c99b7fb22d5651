//go:build unix

package engine

import (
	"fmt"
	"io/fs"
	"syscall"
)

// FileID names a file so that two processes can agree on it; empty where that
// cannot be.
func FileID(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
	}
	return ""
}
