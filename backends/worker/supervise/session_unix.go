//go:build unix

package supervise

import "syscall"

// ownSession starts a process in a session of its own, so that no terminal and
// no process group of ours takes it along.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
