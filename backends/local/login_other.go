//go:build !unix

package local

import "os/exec"

func isolate(*exec.Cmd) {}
