package supervise

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path/filepath"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/handover"
	"github.com/caisson-dev/caisson/backends/worker/site"
)

// AttachOptions say which worker to reach and how to start it.
type AttachOptions struct {
	// Worker are the options of the worker that is started when none listens.
	// Listen, State and Session are needed.
	Worker worker.Options
	// Mark is printed first, as a line of its own, so that the host knows where
	// the worker's bytes begin. Empty prints nothing.
	Mark string
	// Control is the control socket of the environment's [Init], which is waited
	// for: only its own workers may stay when another one's leavings are killed.
	// Empty means that Attach starts the worker itself, detached.
	Control string
	// Executable is this program; empty means the one that runs.
	Executable string
	// Stdin and Stdout are joined to the worker. Both are closed at the end; a
	// read of Stdin that cannot be interrupted is left behind.
	Stdin  io.ReadCloser
	Stdout io.WriteCloser
}

// Register defines the worker's flags and --mark and --control on flags.
func (o *AttachOptions) Register(flags *flag.FlagSet) {
	o.Worker.Register(flags)
	flags.StringVar(&o.Mark, "mark", o.Mark, "print `word` on a line of its own before anything else")
	flags.StringVar(&o.Control, "control", o.Control, "ask the init that listens on this `socket` for the worker")
}

// Args are the flags that give these options.
func (o AttachOptions) Args() []string {
	args := o.Worker.Args()
	if o.Mark != "" {
		args = append(args, "--mark="+o.Mark)
	}
	if o.Control != "" {
		args = append(args, "--control="+o.Control)
	}
	return args
}

// Attach joins the streams to the worker of a session, which takes them over where
// it can (see package handover), and returns when either side has ended: at the end
// of the input it waits for what the worker still answers, at the end of the
// worker's output for nothing.
func Attach(ctx context.Context, o AttachOptions) error {
	err := attach(ctx, o)
	return errors.Join(err, ignoreClosed(o.Stdin.Close()), ignoreClosed(o.Stdout.Close()))
}

func attach(ctx context.Context, o AttachOptions) error {
	if err := o.Worker.Check(); err != nil {
		return err
	}
	if o.Worker.Listen == "" {
		return errors.New("attach needs the worker's socket (--listen)")
	}
	if o.Mark != "" {
		if _, err := io.WriteString(o.Stdout, o.Mark+"\n"); err != nil {
			return fmt.Errorf("print the mark: %w", err)
		}
	}
	conn, err := connectIn(ctx, o.Worker, func(ctx context.Context) error {
		if o.Control != "" {
			return ask(ctx, o.Control, o.Worker)
		}
		return Start(ctx, o.Executable, o.Worker, nil)
	})
	if err != nil {
		return err
	}
	return join(ctx, conn, o.Stdin, o.Stdout)
}

// join hands the streams over to the worker, or relays when that cannot be.
func join(ctx context.Context, conn *net.UnixConn, in io.ReadCloser, out io.Writer) error {
	first, taken, err := handover.Give(ctx, conn, in, out, drainTimeout)
	if err == nil && len(first) > 0 {
		_, err = out.Write(first)
	}
	if taken || err != nil {
		return errors.Join(ignoreGone(err), ignoreClosed(conn.Close()))
	}
	return relay(ctx, conn, in, out)
}

// connectIn is Connect in an environment that is kept from being removed
// meanwhile.
func connectIn(ctx context.Context, o worker.Options, start func(context.Context) error) (*net.UnixConn, error) {
	if o.Site == "" {
		return Connect(ctx, o, start)
	}
	release, err := site.Enter(ctx, o.Site)
	if err != nil {
		return nil, err
	}
	conn, err := Connect(ctx, o, start)
	return conn, errors.Join(err, release())
}

// Connect connects to the worker that o describes. When none listens it calls
// start, which returns once one does; a file lock keeps two starters apart.
func Connect(ctx context.Context, o worker.Options, start func(context.Context) error) (conn *net.UnixConn, err error) {
	conn, err = dial(ctx, o.Listen)
	if err == nil || !nobodyThere(err) {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	lock, err := endpoint.Acquire(ctx, filepath.Join(worker.SessionDir(o.State, o.Session), "start.lock"))
	if errors.Is(err, endpoint.ErrLocked) {
		return nil, fmt.Errorf("another process is starting the worker: %w", err)
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }()
	conn, err = dial(ctx, o.Listen)
	if err == nil || !nobodyThere(err) {
		return conn, err
	}
	// A worker that is killed before anybody has reached it has done nothing, and
	// another one may be started.
	for try := 1; ; try++ {
		failed := start(ctx)
		// Also when that failed: the former worker may listen again.
		conn, err = dial(ctx, o.Listen)
		if err == nil || !nobodyThere(err) {
			return conn, err
		}
		if try == startTries || ctx.Err() != nil {
			return nil, cmp.Or(failed, err)
		}
	}
}

func dial(ctx context.Context, path string) (*net.UnixConn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the worker: %w", err)
	}
	conn := c.(*net.UnixConn)
	if err := endpoint.Wake(conn); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to the worker: %w", err), conn.Close())
	}
	return conn, nil
}

// nobodyThere reports whether a dial failed because nothing listens.
func nobodyThere(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// Listening reports whether somebody listens on a socket.
func Listening(ctx context.Context, path string) (bool, error) {
	conn, err := dial(ctx, path)
	if nobodyThere(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, conn.Close()
}

func ignoreClosed(err error) error {
	if errors.Is(err, fs.ErrClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// relay copies both ways until the connection's output ends.
func relay(ctx context.Context, conn *net.UnixConn, in io.ReadCloser, out io.Writer) error {
	inbound := make(chan error, 1)
	go func() { inbound <- copyIn(conn, in) }()
	outbound := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, conn)
		outbound <- err
	}()

	var err error
	drain := time.NewTimer(drainTimeout)
	drain.Stop()
	defer drain.Stop()
	for waiting := true; waiting; {
		select {
		case err = <-outbound:
			// The input, if it still comes, has nowhere to go.
			return errors.Join(ignoreGone(err), ignoreClosed(conn.Close()))
		case err = <-inbound:
			inbound = nil
			if err != nil {
				waiting = false
				break
			}
			drain.Reset(drainTimeout)
		case <-drain.C:
			err, waiting = handover.ErrLingers, false
		case <-ctx.Done():
			err, waiting = ctx.Err(), false
		}
	}
	err = errors.Join(ignoreGone(err), ignoreClosed(conn.Close()))
	<-outbound //nolint:errcheck // ended by the close, whose error counts
	return err
}

// copyIn passes the input on and ends the worker's when it has ended.
func copyIn(conn *net.UnixConn, in io.Reader) error {
	// Not io.Copy: its buffer is smaller than what an engine hands over at once.
	_, err := io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{in}, make([]byte, copyBuffer))
	if err != nil {
		return err
	}
	return ignoreGone(conn.CloseWrite())
}

// ignoreGone drops errors that only say that the other side has ended.
func ignoreGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.ENOTCONN) {
		return nil
	}
	return ignoreClosed(err)
}
