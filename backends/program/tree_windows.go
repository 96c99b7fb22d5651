package program

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/windows"
)

// tree is a process with its descendants: a job.
type tree struct{ job windows.Handle }

func start(cmd *exec.Cmd) (*tree, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(job))
	}
	t := &tree{job: job}
	if err := t.assign(cmd.Process.Pid); err != nil {
		// It runs, but could not be ended with what it starts.
		return nil, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), windows.CloseHandle(job))
	}
	return t, nil
}

func (t *tree) assign(pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	return errors.Join(windows.AssignProcessToJobObject(t.job, process), windows.CloseHandle(process))
}

// wait waits for the exit of the process and ends what is left in the job.
func (t *tree) wait(cmd *exec.Cmd) error {
	err := cmd.Wait()
	t.kill()
	_ = windows.CloseHandle(t.job)
	return err
}

// kill ends everything in the job.
func (t *tree) kill() { _ = windows.TerminateJobObject(t.job, 1) }
