package client

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// process is the service as a child of ours.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how; set before done is closed
	kill sync.Once
}

// Start starts the service and makes a client of it. Command is what starts it,
// such as exec.Command("caisson", "serve"); its standard input and output must
// not be set, its standard error is the caller's. The service ends with
// [Client.Close], and by itself when this process dies.
func Start(command *exec.Cmd, o Options) (*Client, error) {
	in, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	out, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start the service: %w", err)
	}
	p := &process{cmd: command, done: make(chan struct{})}
	c := New(in, out, o)
	c.process = p
	go func() {
		// Wait closes our end of its output, so what it wrote must be read first.
		<-c.Done()
		p.err = command.Wait()
		close(p.done)
	}()
	return c, nil
}

// PID is the id of the process that Start started; 0 for a client made by New.
func (c *Client) PID() int {
	if c.process == nil {
		return 0
	}
	return c.process.cmd.Process.Pid
}

// exitGrace is how long a killed process may take to be gone.
const exitGrace = 2 * time.Second

// wait waits for the process to end, and kills it when ctx is done first.
func (p *process) wait(ctx context.Context) error {
	if p == nil {
		return nil
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		var killErr error
		p.kill.Do(func() { killErr = p.cmd.Process.Kill() })
		timer := time.NewTimer(exitGrace)
		defer timer.Stop()
		select {
		case <-p.done:
		case <-timer.C:
			return errors.Join(errors.New("the service does not end"), killErr)
		}
		return errors.New("the service did not end by itself and was killed")
	}
	if p.err != nil {
		return fmt.Errorf("the service ended with an error: %w", p.err)
	}
	return nil
}
