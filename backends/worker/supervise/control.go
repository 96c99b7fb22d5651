package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/worker"
)

// The control socket takes one message each way: which worker is wanted, by
// its flags, and what became of it. The sender ends its side after it.
type (
	controlRequest struct {
		Args []string `json:"args"`
	}
	controlReply struct {
		Error string `json:"error,omitempty"`
	}
)

// ask asks the init behind the control socket for a worker, and returns once
// that worker listens.
func ask(ctx context.Context, control string, o worker.Options) error {
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	conn, err := dialInit(ctx, control)
	if err != nil {
		return err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	// An init that refuses says so without waiting for what it is asked.
	sent := send(conn, controlRequest{Args: o.Args()})
	var reply controlReply
	if err := receive(conn, &reply); err != nil {
		return fmt.Errorf("ask init for a worker: %w", cmp.Or(sent, err))
	}
	if reply.Error != "" {
		return fmt.Errorf("ask init for a worker: %s", reply.Error)
	}
	return sent
}

// dialInit connects to the control socket as soon as there is an init behind it:
// one that was just started with its environment may not listen yet.
func dialInit(ctx context.Context, control string) (*net.UnixConn, error) {
	tick := time.NewTicker(initInterval)
	defer tick.Stop()
	for {
		conn, err := dial(ctx, control)
		if !nobodyThere(err) {
			return conn, err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("no init of the environment listens: %w", err)
		}
	}
}

// halfCloser is a connection whose sending side can end alone.
type halfCloser interface {
	io.Writer
	CloseWrite() error
}

func send(conn halfCloser, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if _, err := conn.Write(b); err != nil {
		return err
	}
	return conn.CloseWrite()
}

// errNoRequest is an end of input where a message should be.
var errNoRequest = errors.New("no message came")

func receive(conn io.Reader, message any) error {
	b, err := io.ReadAll(io.LimitReader(conn, maxControl+1))
	if err != nil && (len(b) == 0 || !errors.Is(err, syscall.ECONNRESET)) {
		return err // the end of one that has not read all that it was sent looks like that
	}
	if len(b) == 0 {
		return errNoRequest
	}
	if len(b) > maxControl {
		return fmt.Errorf("a message of more than %d bytes", maxControl)
	}
	return json.Unmarshal(b, message)
}

// options are the worker's options that a request asks for.
func (r controlRequest) options() (worker.Options, error) {
	var o worker.Options
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	o.Register(flags)
	if err := flags.Parse(r.Args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.Listen == "" {
		return o, errors.New("the worker has no socket (--listen)")
	}
	return o, o.Check()
}
