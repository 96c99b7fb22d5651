package local

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// limitBudget is how long a worker is tried to be started that a limit of the user's keeps
// from it: what is over soon makes room for it, and of the rest people learn at once, who
// have to do something about it.
const limitBudget = 3 * time.Second

// host reaches the workers of this machine. There is nothing to create: a
// worker is started by the first dial.
type host struct{ backend *Backend }

var _ remote.Host = host{}

func (host) Create(context.Context, backends.Binding, backends.Progress) error { return nil }
func (host) Attach(context.Context, backends.Binding) error                    { return nil }
func (host) Remove(context.Context, backends.Binding) error                    { return nil }

// Dial connects to the session's worker and starts it when it does not run.
func (h host) Dial(ctx context.Context, at backends.Binding) (remote.Stream, error) {
	o := workerOptions(at)
	if err := o.Check(); err != nil {
		return remote.Stream{}, tool.Errorf(tool.BackendUnavailable, "a local worker cannot be started: %w", err).
			WithHint("set XDG_RUNTIME_DIR to a short private directory if the path is too long")
	}
	conn, err := supervise.Connect(ctx, o, func(ctx context.Context) error {
		env := commandEnvironment(h.backend.login(), at.Profile)
		return supervise.Start(ctx, h.backend.o.Executable, o, env)
	})
	if err != nil {
		return remote.Stream{}, unreached(err).WithDisk(o.State)
	}
	if err := endpoint.CheckServer(conn); err != nil {
		return remote.Stream{}, errors.Join(
			tool.Errorf(tool.Denied, "what listens on %s is not the session's worker: %w", o.Listen, err), conn.Close())
	}
	return remote.Stream{ReadWriteCloser: conn}, nil
}

// unreached is why there is no worker to speak to. A limit that starting one has met may
// leave room for it at the next try: the worker's own words tell of it where it was the
// worker that met it.
func unreached(err error) *tool.Error {
	e := tool.Errorf(tool.BackendUnavailable, "reach the local worker: %w", err)
	if strings.Contains(err.Error(), "connect: "+syscall.EAGAIN.Error()) {
		// The same number as of a limit, but of connect: more wait there than the
		// worker's queue holds.
		e.Retryable = true
		return e.WithHint("try again: too many connect to the worker at once")
	}
	for _, limit := range []error{syscall.EAGAIN, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM} {
		if errors.Is(err, limit) || strings.Contains(err.Error(), limit.Error()) || strings.Contains(err.Error(), "failed to create new OS thread") {
			e.Kind, e.Retryable = tool.Overloaded, true
			return e.WithHint("end some processes, or raise the limit: this user is at one of processes (ulimit -u), descriptors (ulimit -n) or memory")
		}
	}
	return e
}

// workerOptions are the options of a binding's worker: the same whenever and by
// whomever they are computed.
func workerOptions(at backends.Binding) worker.Options {
	p := at.Profile
	return worker.Options{
		Listen:          endpoint.SocketPath(at.RuntimeDir, at.Environment+"/"+at.Session),
		State:           workerState(at),
		Session:         at.Session,
		Mode:            p.PermissionMode,
		Ceiling:         p.MaxPermissionMode,
		Writable:        p.WritablePaths,
		Lifetime:        p.Lifetime,
		MaxOutputBytes:  p.MaxOutputBytes,
		Shell:           p.Shell,
		ShutdownTimeout: p.ShutdownTimeout,
	}
}

// listening reports whether the binding's worker can be dialled.
func listening(ctx context.Context, at backends.Binding) (bool, error) {
	return supervise.Listening(ctx, workerOptions(at).Listen)
}

// everStarted reports whether there was a worker whose records may matter.
func everStarted(at backends.Binding) bool {
	_, err := os.Stat(worker.SessionDir(workerState(at), at.Session))
	return err == nil
}

// openFar connects to the binding's worker, whose workspace is root.
func (b *Backend) openFar(ctx context.Context, at backends.Binding, root string) (*remote.Environment, error) {
	return remote.Open(ctx, host{b}, at, nil, remote.Options{
		Backend:                  profile.Local,
		Root:                     root,
		RequireExistingWorkspace: true,
		LimitBudget:              limitBudget,
		Log:                      b.o.Log,
	})
}
