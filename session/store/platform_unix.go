//go:build unix

package store

import (
	"os"
	"syscall"
)

// permissionsMatter says that mode bits keep others out.
const permissionsMatter = true

// movesOpenFiles says that a directory can be moved while a file in it is open.
const movesOpenFiles = true

// bellFlags keep an open from following a link, and from waiting for the reader of a pipe.
const bellFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// ownedByUs reports whether the user that we run as owns the file. In a
// directory where everybody may write, a name alone says nothing.
func ownedByUs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
