package supervise

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// Init runs as the first process of a container, or anywhere as a subreaper:
// it reaps whatever becomes its child, starts the workers that [Attach] asks for
// on the control socket, and settles the records of one that died, after
// killing what it left behind. It returns nil when the idle limit of an
// environment that is not persistent is over, and when ctx ends; either way
// every worker has ended before, or was killed after the shutdown timeout.
func Init(ctx context.Context, o InitOptions) (err error) {
	o = o.withDefaults()
	if o.Executable, err = program(o.Executable); err != nil {
		return err
	}
	peers, err := endpoint.NewPeers(endpoint.InitName)
	if err != nil {
		return err
	}
	// PID 1 adopts orphans anyway; elsewhere the kernel has to be told.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	listener, err := endpoint.Listen(o.Control)
	if err != nil {
		return err
	}
	in := &supervisor{
		o:       o,
		peers:   peers,
		workers: map[string]*child{},
		ended:   make(chan struct{}, 1),
		slots:   make(chan struct{}, maxControls),
	}
	in.idleAt = time.Now().Add(max(o.Lifetime, arrivalTime))

	chld := make(chan os.Signal, 1)
	signal.Notify(chld, unix.SIGCHLD)
	defer signal.Stop(chld)
	reaping, stopReaping := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { in.reapUntil(reaping, chld) })

	serving, stopServing := context.WithCancel(ctx)
	var controls sync.WaitGroup
	controls.Go(func() { in.accept(serving, listener) })

	in.wait(ctx)

	stopServing()
	err = ignoreClosed(listener.Close())
	controls.Wait()
	err = errors.Join(err, in.terminate())
	stopReaping()
	background.Wait()
	if rm := os.Remove(o.Control); rm != nil && !errors.Is(rm, fs.ErrNotExist) {
		err = errors.Join(err, rm)
	}
	return err
}

// supervisor is the state of one Init.
type supervisor struct {
	o     InitOptions
	peers *endpoint.Peers

	slots chan struct{} // bounds exchanges on the control socket
	ended chan struct{} // has an element after a worker has ended

	mu      sync.Mutex
	workers map[string]*child // by socket path
	idleAt  time.Time         // when the idle limit is over while no worker runs
}

// child is one worker from the request for it to its end.
type child struct {
	o worker.Options
	// started is closed when the start has succeeded or failed.
	started chan struct{}
	err     error
	// pid is set, under the supervisor's lock, as soon as there is one.
	pid int
	// done is closed after the worker was reaped and its records settled.
	done chan struct{}
}

// wait returns when the idle limit is over or ctx ends.
func (in *supervisor) wait(ctx context.Context) {
	for {
		var idle <-chan time.Time
		in.mu.Lock()
		left, empty := time.Until(in.idleAt), len(in.workers) == 0
		if empty && !in.o.Persistent {
			if left <= 0 {
				in.mu.Unlock()
				in.o.Log.Info("idle limit over", "lifetime", in.o.Lifetime)
				return
			}
			idle = time.After(left)
		}
		in.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-idle:
		case <-in.ended:
		}
	}
}

// accept serves the control socket until it is closed, and returns when the
// last exchange is over.
func (in *supervisor) accept(ctx context.Context, l *net.UnixListener) {
	var exchanges sync.WaitGroup
	defer exchanges.Wait()
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, mostly: what is open now will be closed.
			in.o.Log.Error("accept on the control socket", "error", err)
			select {
			case <-ctx.Done():
				return
			case <-time.After(killInterval):
			}
			continue
		}
		select {
		case in.slots <- struct{}{}:
			exchanges.Go(func() {
				defer func() { <-in.slots }()
				in.control(ctx, conn)
			})
		default:
			_ = conn.Close() // its request was not begun
		}
	}
}

// control answers one request.
func (in *supervisor) control(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, controlTimeout)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	if err := in.peers.Check(conn); err != nil {
		in.o.Log.Warn("refused on the control socket", "reason", err)
		// At once, whatever it asks for: it must not hold its place.
		_ = send(conn, controlReply{Error: refusal(err)}) // it may have gone
		return
	}
	var reply controlReply
	err := in.ensure(ctx, conn)
	if errors.Is(err, errNoRequest) {
		return // somebody looked whether we are here
	}
	if err != nil {
		reply.Error = err.Error()
		in.o.Log.Error("start a worker", "error", err)
	}
	if err := send(conn, reply); err != nil {
		in.o.Log.Warn("answer on the control socket", "error", err)
	}
}

// refusal is what a peer is told that may not ask, and why, unless it may be a command:
// that one is to learn nothing from what it is taken for.
func refusal(why error) string {
	if errors.Is(why, endpoint.ErrCommand) {
		return "init refused the connection"
	}
	return "init refused the connection: " + why.Error()
}

// ensure reads a request and returns once the worker that it wants listens.
func (in *supervisor) ensure(ctx context.Context, conn *net.UnixConn) error {
	var request controlRequest
	if err := receive(conn, &request); err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	o, err := request.options()
	if err != nil {
		return err
	}
	for {
		c, mine := in.claim(o)
		if mine {
			in.start(ctx, c)
		}
		select {
		case <-c.started:
		case <-ctx.Done():
			return fmt.Errorf("another request is starting the worker: %w", ctx.Err())
		}
		if mine || c.err != nil {
			return c.err
		}
		// One that was there before may be about to end.
		probe, err := dial(ctx, o.Listen)
		if err == nil {
			return probe.Close()
		}
		if !nobodyThere(err) {
			return err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("the session's former worker is still ending: %w", ctx.Err())
		}
	}
}

// claim returns the worker of the socket, and whether the caller must start it.
func (in *supervisor) claim(o worker.Options) (c *child, mine bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.idleAt = time.Now().Add(in.o.Lifetime)
	if c := in.workers[o.Listen]; c != nil {
		return c, false
	}
	c = &child{o: o, started: make(chan struct{}), done: make(chan struct{})}
	in.workers[o.Listen] = c
	return c, true
}

// start starts c and waits until it listens.
func (in *supervisor) start(ctx context.Context, c *child) {
	defer close(c.started)
	o := c.o
	o.Contained = true
	s, err := spawn(in.o.Executable, o, func(name string, argv []string, attr *os.ProcAttr) (*os.Process, error) {
		// The lock keeps the reaper from a process that is not entered yet.
		in.mu.Lock()
		defer in.mu.Unlock()
		p, err := os.StartProcess(name, argv, attr)
		if err == nil {
			c.pid = p.Pid
		}
		return p, err
	})
	if err != nil {
		c.err = err
		in.forget(c)
		return
	}
	pid := s.process.Pid
	// The reaper waits for it, not we.
	if err := s.process.Release(); err != nil {
		in.o.Log.Warn("release the worker's handle", "error", err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if c.err = s.await(ctx); c.err != nil {
		in.signal(c, unix.SIGKILL)
		return
	}
	in.o.Log.Info("worker started", "pid", pid, "session", c.o.Session)
}

// signal sends a signal to a worker that was not reaped.
func (in *supervisor) signal(c *child, sig unix.Signal) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if c.pid == 0 || in.workers[c.o.Listen] != c {
		return
	}
	if err := unix.Kill(c.pid, sig); err != nil {
		in.o.Log.Warn("signal the worker", "pid", c.pid, "signal", sig, "error", err)
	}
}

// forget ends the life of a worker.
func (in *supervisor) forget(c *child) {
	in.mu.Lock()
	delete(in.workers, c.o.Listen)
	in.mu.Unlock()
	close(c.done)
	select {
	case in.ended <- struct{}{}:
	default:
	}
}
