//go:build unix

package supervise

import "syscall"

// keepOwn has what is made from here on, also by commands, be its owner's to use: an
// account's umask may deny that, and then nothing could be worked with. What it
// denies to others stays denied.
func keepOwn() {
	const owner = 0o700
	// It is only told by setting it; nothing else runs yet.
	before := syscall.Umask(0o777)
	syscall.Umask(before &^ owner)
}
