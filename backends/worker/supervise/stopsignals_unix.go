//go:build unix

package supervise

import (
	"os"
	"syscall"
)

// stopSignals are those by which a terminal stops a process.
func stopSignals() []os.Signal {
	return []os.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}
}
