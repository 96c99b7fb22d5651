package connection

import (
	"os"
	"os/exec"
)

// canMaster is whether OpenSSH can share a connection here.
const canMaster = false

// prepare has nothing to do: a service has no console to be asked on.
func prepare(*exec.Cmd) {}

func terminate(p *os.Process) {
	_ = p.Kill() // it may have ended already
}

func killGroup(p *os.Process) { terminate(p) }
