//go:build unix

package connection

import (
	"os"
	"os/exec"
	"syscall"
)

// canMaster is whether OpenSSH can share a connection here.
const canMaster = true

// prepare makes cmd the leader of a session without a terminal, so that
// nothing that it starts can ask a question there.
func prepare(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks a process to end.
func terminate(p *os.Process) {
	_ = p.Signal(syscall.SIGTERM) // it may have ended already
}

// killGroup ends a process that prepare has prepared, and what it has started.
func killGroup(p *os.Process) {
	_ = syscall.Kill(-p.Pid, syscall.SIGKILL) // it may have ended already
}
