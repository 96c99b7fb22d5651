package process

import "syscall"

// WritePrograms runs write, which writes files that commands may execute and
// closes them, while no child is between its fork and its own program. Such a
// child has everything open that was open at its fork, and nobody can execute a
// file that somebody has open for writing.
func WritePrograms(write func() error) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return write()
}
