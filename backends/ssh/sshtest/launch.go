package sshtest

import (
	"os/exec"
	"runtime"
)

// launch starts a command that lives no longer than this process. stop kills it
// and waits for its end.
func launch(cmd *exec.Cmd) (stop func(), err error) {
	dieWithThread(cmd)
	started, ended := make(chan error), make(chan struct{})
	go func() {
		defer close(ended)
		// The thread has to live as long as the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // it is killed in the end
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-ended
	}, nil
}
