//go:build unix

package program

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// tree is a process with its descendants: a process group, and on Linux those too
// that have left it.
type tree struct{ pid int }

func start(cmd *exec.Cmd) (*tree, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &tree{pid: cmd.Process.Pid}, nil
}

// endGroup ends what is left of the group. An empty one is no error.
func (t *tree) endGroup() { _ = unix.Kill(-t.pid, unix.SIGKILL) }
