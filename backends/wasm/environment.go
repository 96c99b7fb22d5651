package wasm

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/job"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// environment is one session's directories, and the engine that runs guests in
// them.
type environment struct {
	backend *Backend
	binding backends.Binding
	places  []*place
	exports *tools.Exports
	events  *backends.Hub
	engine  *engineProcess
	hashes  hashes

	// life ends with Detach, and with it every call.
	life context.Context
	end  context.CancelFunc

	mu       sync.Mutex
	detached bool
	calls    sync.WaitGroup

	jobsMu   sync.Mutex
	jobs     *job.Runner     // nil before the first job
	jobsRoot *workspace.Root // nil where the jobs' workspace is a place
}

var (
	_ backends.Environment  = (*environment)(nil)
	_ backends.FileSystem   = (*environment)(nil)
	_ backends.ModuleRunner = (*environment)(nil)
	_ backends.JobRunner    = (*environment)(nil)
)

func newEnvironment(b *Backend, at backends.Binding, places []*place) *environment {
	life, end := context.WithCancel(context.Background())
	e := &environment{
		backend: b, binding: at, places: places,
		exports: tools.NewExports(exportsDir(at)),
		events:  backends.NewHub(),
		life:    life, end: end,
	}
	e.engine = newEngineProcess(b, at, mounts(places))
	for _, p := range places {
		p.tools = tools.New(tools.Options{
			Root:           p.root,
			Exports:        e.exports,
			DefaultMode:    at.Profile.PermissionMode,
			Ceiling:        at.Profile.MaxPermissionMode,
			MaxOutputBytes: at.Profile.MaxOutputBytes,
		})
	}
	return e
}

// Info describes the environment; its root is where guests see the first directory.
func (e *environment) Info() backends.Info {
	root := "/"
	if len(e.places) > 0 {
		root = e.places[0].Guest
	}
	return backends.Info{Backend: profile.WASM, Environment: e.binding.Environment, Root: root}
}

// Tools describes the tools that work on files; without a directory there are none.
func (e *environment) Tools(context.Context) ([]tool.Description, error) {
	if len(e.places) == 0 {
		return nil, nil
	}
	return e.places[0].tools.Descriptions(), nil
}

// begin enters a call, which ends with the environment.
func (e *environment) begin(ctx context.Context) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached {
		return nil, nil, backends.ErrDetached()
	}
	e.calls.Add(1)
	ctx, release := backends.Within(ctx, e.life)
	return ctx, func() { release(); e.calls.Done() }, nil
}

// mode is the permission mode that holds for a call.
func (e *environment) mode(asked tool.Mode, actor tool.Actor) (tool.Mode, error) {
	mode := cmp.Or(asked, e.binding.Profile.PermissionMode, tool.Standard)
	if actor.Kind == tool.ActorSideChat {
		mode = tool.ReadOnly
	}
	if ceiling := cmp.Or(e.binding.Profile.MaxPermissionMode, tool.Standard); !mode.Within(ceiling) {
		return "", tool.Errorf(tool.Denied, "the permission mode %q is above this environment's ceiling %q", mode, ceiling).
			WithHint("call with %q or less, or raise max_permission_mode in the profile", ceiling)
	}
	return mode, nil
}

// Processes are none: every question about them is answered so.
func (*environment) Processes() backends.Processes { return noProcesses{} }

// Events are none, but for the end of the environment.
func (e *environment) Events() backends.Events { return e.events }

// Export streams a snapshot.
func (e *environment) Export(_ context.Context, token string) (io.ReadCloser, error) {
	_, done, err := e.begin(context.Background())
	if err != nil {
		return nil, err
	}
	return e.exports.Take(token, done)
}

// Detach ends every call and the engine: what lives on are files. A call that does
// not end, such as one in a file system that does not answer, keeps the directories
// open until it does.
func (e *environment) Detach(ctx context.Context) error {
	e.mu.Lock()
	first := !e.detached
	e.detached = true
	e.mu.Unlock()
	if !first {
		return nil
	}
	e.end()
	err := e.engine.close()
	e.events.Close(backends.ErrDetached())
	closed := make(chan error, 1)
	go func() {
		e.calls.Wait()
		closed <- errors.Join(e.exports.Close(), e.closeJobs(), closePlaces(e.places))
	}()
	select {
	case failed := <-closed:
		return errors.Join(err, failed)
	case <-ctx.Done():
		return errors.Join(err, tool.Errorf(tool.Internal, "calls of the wasm session do not end: %w", ctx.Err()))
	}
}

// Shutdown is Detach: nothing of an environment outlives it.
func (e *environment) Shutdown(ctx context.Context) error { return e.Detach(ctx) }
