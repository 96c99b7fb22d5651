//go:build unix

package diskfile

import "syscall"

// NoFollow is the flag that keeps an open from following a link.
const NoFollow = syscall.O_NOFOLLOW
