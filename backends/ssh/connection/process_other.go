//go:build !linux

package connection

import "os/exec"

// dieWithParent has no counterpart here: a master of a service that was killed
// lives until its connection ends.
func dieWithParent(*exec.Cmd) {}
