package connection

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel end a process when the thread that starts it
// does: a service that is killed leaves no connection behind.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr.Pdeathsig = syscall.SIGTERM }
