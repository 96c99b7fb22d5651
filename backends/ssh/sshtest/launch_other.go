//go:build !linux

package sshtest

import "os/exec"

// dieWithThread has no counterpart here: a test that panics leaves its servers
// behind.
func dieWithThread(*exec.Cmd) {}
