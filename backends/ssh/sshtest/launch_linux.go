package sshtest

import (
	"os/exec"
	"syscall"
)

// dieWithThread has the kernel end a process with the thread that starts it: a
// test that panics leaves no server behind.
func dieWithThread(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
