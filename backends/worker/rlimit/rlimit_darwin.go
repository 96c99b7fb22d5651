package rlimit

import (
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// memoryLimit is never used: the system takes it and does not hold it.
const memoryLimit = unix.RLIMIT_AS

func (l Limits) supported() error {
	if l.Memory > 0 {
		return tool.Errorf(tool.Unsupported, "this system holds no limit of a process's memory").WithPath("constraints.memory").
			WithHint("choose a profile whose commands run on Linux")
	}
	return nil
}
