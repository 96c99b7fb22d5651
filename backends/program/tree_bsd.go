//go:build unix && !linux

package program

import "os/exec"

// wait waits for the exit of the process and ends what is left of its group.
func (t *tree) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	t.endGroup()
	return err
}

// kill kills the process and its group.
func (t *tree) kill() { t.endGroup() }
