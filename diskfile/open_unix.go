//go:build unix

package diskfile

import "syscall"

// NoFollow is the flag that keeps an open from following a link.
const NoFollow = syscall.O_NOFOLLOW

// MovesOpen says that a file can be moved while it is open, and a directory while a file
// in it is.
const MovesOpen = true
