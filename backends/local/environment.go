package local

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/remote"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// environment is a local session: its near half answers file and search tools
// in this process, its far half, once there is one, is a worker.
type environment struct {
	*tools.Set // the near half

	backend *Backend
	at      backends.Binding
	root    *workspace.Root
	exports *tools.Exports
	lines   checkedLines
	packs   []tool.Description // the tools of packs; set once, by Open
	events  *backends.Hub

	// life ends with Detach, and with it every near call.
	life context.Context
	end  context.CancelFunc
	// near counts calls and exports that go on in this process.
	near sync.WaitGroup

	// connecting is held, by having put an element in, while the far half is
	// looked for or made.
	connecting chan struct{}

	mu       sync.Mutex
	far      *remote.Environment // nil before there was need of a worker
	detached bool
	pump     sync.WaitGroup // passes the far half's events on
}

var (
	_ backends.Environment = (*environment)(nil)
	_ backends.FileSystem  = (*environment)(nil)
)

func newEnvironment(b *Backend, at backends.Binding, root *workspace.Root) *environment {
	life, end := context.WithCancel(context.Background())
	e := &environment{
		backend:    b,
		at:         at,
		root:       root,
		exports:    tools.NewExports(exportsDir(at)),
		lines:      newCheckedLines(at.Profile),
		events:     backends.NewHub(),
		life:       life,
		end:        end,
		connecting: make(chan struct{}, 1),
	}
	o := tools.Options{
		Root:           root,
		Exports:        e.exports,
		DefaultMode:    at.Profile.PermissionMode,
		Ceiling:        at.Profile.MaxPermissionMode,
		MaxOutputBytes: at.Profile.MaxOutputBytes,
	}
	if errNoCommands() == nil {
		o.Commands = elsewhere{} // so that their tools are described
	}
	e.Set = tools.New(o)
	return e
}

// Info describes the near half: its root is the far half's too.
func (e *environment) Info() backends.Info {
	return backends.Info{
		Backend:      profile.Local,
		Environment:  e.at.Environment,
		Root:         e.root.Dir(),
		Capabilities: worker.Capabilities(),
	}
}

// Tools describes the tools of both halves.
func (e *environment) Tools(context.Context) ([]tool.Description, error) {
	all := slices.DeleteFunc(e.Descriptions(), func(d tool.Description) bool { return e.ofPack(d.Name) })
	all = append(all, e.packs...)
	slices.SortFunc(all, func(a, b tool.Description) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Call runs a tool where it belongs.
func (e *environment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	if r.Timeout <= 0 {
		r.Timeout = e.at.Profile.Timeout
	}
	if e.ofPack(r.Name) {
		far, err := e.worker(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		return far.Call(ctx, r)
	}
	if group := tool.GroupOf(r.Name); group.Commands() {
		unread := e.lines.ofCall(r)
		if group != tool.GroupProcess {
			// A worker that is started now would open what is there now.
			if err := e.root.Check(); err != nil {
				return tool.Result{}, err
			}
		}
		if unread != nil {
			return e.misspelt(ctx, r, unread)
		}
		far, err := e.worker(ctx)
		if err != nil {
			return tool.Result{}, err
		}
		return far.Call(ctx, r)
	}
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	return e.Set.Call(ctx, r)
}

// begin enters a call that goes on in this process; it ends with the
// environment.
func (e *environment) begin(ctx context.Context) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached {
		return nil, nil, backends.ErrDetached()
	}
	e.near.Add(1)
	ctx, release := backends.Within(ctx, e.life)
	return ctx, func() { release(); e.near.Done() }, nil
}

// worker is the far half, which is started or found when there is none yet.
func (e *environment) worker(ctx context.Context) (*remote.Environment, error) {
	if err := errNoCommands(); err != nil {
		return nil, err
	}
	select {
	case e.connecting <- struct{}{}:
		defer func() { <-e.connecting }()
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
	e.mu.Lock()
	far, detached := e.far, e.detached
	e.mu.Unlock()
	if far != nil || detached {
		if detached {
			return nil, backends.ErrDetached()
		}
		return far, nil
	}
	return e.connect(ctx)
}

func contextError(ctx context.Context) error {
	return tool.Errorf(tool.EndKind(ctx), "waited for the local worker: %w", context.Cause(ctx))
}

// connect makes the far half. The caller holds connecting.
func (e *environment) connect(ctx context.Context) (*remote.Environment, error) {
	far, err := e.backend.openFar(ctx, e.at, e.root.Dir())
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached {
		return nil, errors.Join(backends.ErrDetached(), far.Detach(context.WithoutCancel(ctx)))
	}
	e.far = far
	events := far.Events().Subscribe()
	e.pump.Go(func() { e.events.Follow(e.life, events) })
	return far, nil
}

// reattach connects to a worker that lives, so that its processes are heard of
// and it does not end idle, and reports whether one may live. A worker that a
// session may have lost is looked for at the next command only.
func (e *environment) reattach(ctx context.Context, p backends.Progress) (alive bool, err error) {
	if errNoCommands() != nil || !everStarted(e.at) {
		return false, nil
	}
	alive, err = listening(ctx, e.at)
	if err != nil {
		return true, tool.Errorf(tool.Internal, "look for the local worker: %w", err)
	}
	if !alive {
		return false, nil
	}
	p.Report("reattaching to the worker of this session")
	_, err = e.worker(ctx)
	return true, err
}

// Processes are those of the far half.
func (e *environment) Processes() backends.Processes { return processes{e} }

// Events are those of both halves: a local session is always ready, whatever
// its worker does, so that only processes are heard of.
func (e *environment) Events() backends.Events { return e.events }

// Export streams a snapshot. Those of jobs are in the far half; present_artifact
// always runs in the near one.
func (e *environment) Export(ctx context.Context, token string) (io.ReadCloser, error) {
	if content, ok, err := e.exportOfWorker(ctx, token); ok {
		return content, err
	}
	_, done, err := e.begin(context.Background())
	if err != nil {
		return nil, err
	}
	return e.exports.Take(token, done)
}

// Detach lets go of both halves. A worker lives on until its idle limit.
func (e *environment) Detach(ctx context.Context) error {
	return e.letGo(ctx, (*remote.Environment).Detach)
}

// Shutdown ends the session's processes and its worker, whether or not this
// environment has used it.
func (e *environment) Shutdown(ctx context.Context) error {
	if err := e.letGo(ctx, (*remote.Environment).Shutdown); err != nil {
		return err
	}
	return e.backend.stopWorker(ctx, e.at, func() error { return nil })
}

// letGo ends the environment here, and the far half by the given method. A call that
// does not end, such as one in a file system that does not answer, keeps the folder
// open until it does.
func (e *environment) letGo(ctx context.Context, far func(*remote.Environment, context.Context) error) error {
	e.mu.Lock()
	first := !e.detached
	e.detached = true
	f := e.far
	e.mu.Unlock()
	if !first {
		return nil
	}
	var err error
	if f != nil {
		err = far(f, ctx)
	}
	e.end()
	e.pump.Wait() // its source has ended
	e.events.Close(backends.ErrDetached())
	closed := make(chan error, 1)
	go func() {
		e.near.Wait()
		closed <- errors.Join(e.exports.Close(), e.root.Close())
	}()
	select {
	case failed := <-closed:
		return errors.Join(err, failed)
	case <-ctx.Done():
		return errors.Join(err, tool.Errorf(tool.Internal, "calls of the local session do not end: %w", ctx.Err()))
	}
}

// elsewhere stands for commands that the far half runs. Calls of their tools
// never reach it.
type elsewhere struct{ tools.Commands }
