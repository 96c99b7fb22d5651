//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// isolate gives a command a session of its own and kills all of it at the end
// of its context.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
