//go:build unix

package store

import (
	"syscall"
)

// permissionsMatter says that mode bits keep others out.
const permissionsMatter = true

// movesOpenFiles says that a directory can be moved while a file in it is open.
const movesOpenFiles = true

// bellFlags keep an open from following a link, and from waiting for the reader of a pipe.
const bellFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
