//go:build unix

package engine

import (
	"os"
	"syscall"
)

// killed reports whether a process was killed, as the kernel does where memory is
// short.
func killed(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}
