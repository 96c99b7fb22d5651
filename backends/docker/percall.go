package docker

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
)

// perCall is the environment of container_policy per_call. What runs commands
// runs in a fresh container, which ends with the call and takes along all that
// was started in it and all that it wrote, but to the workspace. One container
// more, like that of any session, holds the workspace's volume and serves files,
// searches and artifacts; no command ever runs in it, so that nothing which a
// command does can reach it, and it is what has the environment's name, labels
// and idle limit.
type perCall struct {
	files *remote.Environment
	host  *host
	b     backends.Binding
	slots chan struct{}      // as many as there may be containers at once
	packs []tool.Description // the tools of packs; set once, when it is opened
	spool spool

	life     context.Context // ends when the environment is let go of
	end      context.CancelCauseFunc
	mu       sync.Mutex
	detached bool
	calls    sync.WaitGroup
}

var (
	_ backends.Environment = (*perCall)(nil)
	_ backends.FileSystem  = (*perCall)(nil)
	_ backends.Forgetter   = (*perCall)(nil)
)

func newPerCall(files *remote.Environment, h *host, b backends.Binding) *perCall {
	e := &perCall{files: files, host: h, b: b, slots: make(chan struct{}, maxCallContainers), spool: spool{random: h.backend.random}}
	e.life, e.end = context.WithCancelCause(context.Background())
	return e
}

// Call runs one tool, in a container of its own unless it is known to start no
// command.
func (e *perCall) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	switch group := tool.GroupOf(r.Name); {
	case group == tool.GroupPlugins || e.ofPack(r.Name):
		// What it starts is not known.
	case !group.Commands():
		return e.files.Call(ctx, r)
	case group == tool.GroupProcess:
		return tool.Result{}, noProcesses("the tool process")
	}
	done, err := e.begin()
	if err != nil {
		return tool.Result{}, err
	}
	defer done()
	limit := r.Timeout
	if limit <= 0 {
		limit = e.b.Profile.Timeout
	}
	timed, cancel := ctx, context.CancelFunc(func() {})
	if limit > 0 {
		timed, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	timed, let := context.WithCancelCause(timed)
	defer let(nil)
	defer context.AfterFunc(e.life, func() { let(context.Cause(e.life)) })()
	var result tool.Result
	err = e.inContainer(timed, func(env *remote.Environment) (err error) {
		result, err = env.Call(timed, r)
		return err
	})
	if err != nil && ctx.Err() == nil && errors.Is(timed.Err(), context.DeadlineExceeded) {
		err = tool.Errorf(tool.Timeout, "%s took longer than %s, and its container was removed: %w", r.Name, limit, err).
			WithHint("allow it more time: the lowest limit of the call, its session, the project, the profile and the configuration counts")
	}
	return result, err
}

// begin counts a call in, unless the environment is let go of.
func (e *perCall) begin() (done func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.detached {
		return nil, backends.ErrDetached()
	}
	e.calls.Add(1)
	return e.calls.Done, nil
}

// inContainer makes a container, does the work there and removes it, all before
// it returns.
func (e *perCall) inContainer(ctx context.Context, work func(*remote.Environment) error) error {
	if e.b.Secrets.Environment == nil && len(e.b.Profile.ForwardEnv) > 0 {
		return tool.Errorf(tool.ConfigInvalid,
			"the variables that the profile %q forwards could not be taken, and each call's container needs them anew", e.b.Profile.Name).
			WithHint("set the variables of forward_env (%v) before the service starts, and open the session again", e.b.Profile.ForwardEnv)
	}
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ended(ctx, "waiting for a container")
	}
	h := &callHost{host: e.host}
	b := e.b
	b.Provisioned, b.RuntimeDir = false, ""
	b.Secrets.Token = e.host.backend.random() + e.host.backend.random()
	env, err := remote.Open(ctx, h, b, nil, remote.Options{
		Backend: profile.Docker, Root: b.Profile.Workspace, RequireExistingWorkspace: true,
		ConnectBudget: callConnectBudget, Log: e.host.backend.log,
	})
	if err != nil {
		return err
	}
	defer func() {
		// The end of its input ends the container, where it has not ended by now.
		if err := env.Detach(context.WithoutCancel(ctx)); err != nil {
			e.host.backend.log.Debug("letting go of a call's container", "container", h.id, "error", err)
		}
		h.gone(ctx)
	}()
	return work(env)
}

// ended is the error of what ctx ended.
func ended(ctx context.Context, doing string) error {
	kind := tool.EndKind(ctx)
	if kind == tool.Timeout {
		return tool.Errorf(kind, "%s took longer than it may", doing)
	}
	return tool.Errorf(kind, "%s was cancelled: %w", doing, context.Cause(ctx))
}

// Processes are none: nothing outlives its call.
func (e *perCall) Processes() backends.Processes { return none{} }

// noProcesses says why something cannot be, and what can.
func noProcesses(what string) error {
	return tool.Errorf(tool.Unsupported, "%s needs a container that lasts, and with container_policy per_call each ends with its call", what).
		WithHint("run the command in the foreground, or use a profile with container_policy per_session")
}

// none are the background processes of an environment that has none.
type none struct{}

func (none) Start(context.Context, tool.StartRequest) (tool.Process, error) {
	return tool.Process{}, noProcesses("a background process")
}

func (none) List(context.Context) ([]tool.Process, error) { return nil, nil }

func (none) Get(_ context.Context, id string) (tool.Process, error) { return missing(id) }

func (none) Read(_ context.Context, id string, _ tool.ReadOptions) (tool.ReadResult, error) {
	p, err := missing(id)
	return tool.ReadResult{Process: p}, err
}

func (none) Write(_ context.Context, id string, _ []byte) (tool.Process, error) { return missing(id) }

func (none) CloseStdin(_ context.Context, id string) (tool.Process, error) { return missing(id) }

func (none) Resize(_ context.Context, id string, _ tool.TTY) (tool.Process, error) {
	return missing(id)
}

func (none) Signal(_ context.Context, id, _ string) (tool.Process, error) { return missing(id) }

func (none) Stop(_ context.Context, id string) (tool.Process, error) { return missing(id) }

func missing(id string) (tool.Process, error) {
	return tool.Process{}, tool.Errorf(tool.ProcessNotFound, "there is no process %q: with container_policy per_call none outlives its call", id)
}

// Info describes the container that holds the workspace.
func (e *perCall) Info() backends.Info { return e.files.Info() }

// Tools describes what the environment offers.
func (e *perCall) Tools(ctx context.Context) ([]tool.Description, error) {
	all, err := e.files.Tools(ctx)
	if err != nil || len(e.packs) == 0 {
		return all, err
	}
	all = slices.DeleteFunc(all, func(d tool.Description) bool { return e.ofPack(d.Name) })
	all = append(all, e.packs...)
	slices.SortFunc(all, func(a, b tool.Description) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// ofPack reports whether a pack has the tool of the name.
func (e *perCall) ofPack(name string) bool {
	return slices.ContainsFunc(e.packs, func(d tool.Description) bool { return d.Name == name })
}

// openPerCall asks the packs of an environment that was just opened what tools they
// have, in a container like that of a call. When that fails, what was made for it is
// removed again, and what a session had before stays.
func (b *Backend) openPerCall(ctx context.Context, e *perCall, p backends.Progress) (backends.Environment, error) {
	if len(e.b.Packs) == 0 {
		return e, nil
	}
	p.Report("asking the tool packs what they have")
	err := e.inContainer(ctx, func(env *remote.Environment) error {
		all, err := env.Tools(ctx)
		e.packs = slices.DeleteFunc(all, func(d tool.Description) bool { return d.Group != tool.GroupPlugins })
		return err
	})
	if err == nil {
		return e, nil
	}
	ctx = context.WithoutCancel(ctx)
	if e.b.Provisioned {
		return nil, errors.Join(err, e.Detach(ctx))
	}
	return nil, errors.Join(err, e.Shutdown(ctx), b.Remove(ctx, e.b))
}

// Events carries changes of state of the container that holds the workspace.
func (e *perCall) Events() backends.Events { return e.files.Events() }

// Export streams a snapshot that present_artifact made, or what a job left.
func (e *perCall) Export(ctx context.Context, token string) (io.ReadCloser, error) {
	if content, ok, err := e.spool.open(token); ok {
		return content, err
	}
	return e.files.Export(ctx, token)
}

// Detach ends the calls, removes their containers and lets go of the workspace.
func (e *perCall) Detach(ctx context.Context) error {
	return errors.Join(e.finish(ctx), e.spool.close(), e.files.Detach(ctx))
}

// Shutdown is Detach, and ends the worker that serves the files.
func (e *perCall) Shutdown(ctx context.Context) error {
	return errors.Join(e.finish(ctx), e.spool.close(), e.files.Shutdown(ctx))
}

// Forget is Shutdown, and has that worker keep nothing of the session.
func (e *perCall) Forget(ctx context.Context) error {
	return errors.Join(e.finish(ctx), e.spool.close(), e.files.Forget(ctx))
}

// finish ends the calls and waits for the removal of their containers.
func (e *perCall) finish(ctx context.Context) error {
	e.mu.Lock()
	e.detached = true
	e.mu.Unlock()
	e.end(backends.ErrDetached())
	if backends.Await(ctx, &e.calls) != nil {
		return ended(ctx, "removing the containers of calls")
	}
	return nil
}

// Stat describes the file at path.
func (e *perCall) Stat(ctx context.Context, path string) (backends.FileInfo, error) {
	return e.files.Stat(ctx, path)
}

// ReadDirectory describes the entries of the directory at path.
func (e *perCall) ReadDirectory(ctx context.Context, path string) ([]backends.FileInfo, error) {
	return e.files.ReadDirectory(ctx, path)
}

// ReadFile returns at most length bytes from offset on.
func (e *perCall) ReadFile(ctx context.Context, path string, offset, length int64) ([]byte, error) {
	return e.files.ReadFile(ctx, path, offset, length)
}

// WriteFile replaces the file at path, keeping its mode.
func (e *perCall) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	return e.files.WriteFile(ctx, path, data)
}

// callHost makes and reaches the container of one call, for package remote. A
// container is reached once, over the streams of its only process, and lost with
// them.
type callHost struct {
	*host
	id     string
	stream *execStream
	given  bool // the stream was given away
}

var _ remote.Host = (*callHost)(nil)

// Create makes and starts the container, whose first process is the worker.
func (h *callHost) Create(ctx context.Context, b backends.Binding, _ backends.Progress) error {
	e := h.engine
	d, err := e.hello(ctx)
	if err != nil {
		return err
	}
	holder, err := h.running(ctx, b)
	if err != nil {
		return err
	}
	spec := h.backend.callSpec(b, d, e.endpoint, holder)
	id, err := h.backend.create(ctx, e, spec)
	if err != nil {
		return explain(err, b, e)
	}
	h.id = id
	if h.stream, err = e.join(ctx, id); err == nil {
		err = e.start(ctx, id)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		h.hangUp()
		h.backend.discard(ctx, e, id)
		return explain(err, b, e)
	}
	return nil
}

// callSpec is the container of one call: that of the environment's, with its
// workspace and nothing else that lasts.
func (b *Backend) callSpec(binding backends.Binding, d daemonInfo, e endpoint, holder containerInfo) containerSpec {
	p := binding.Profile
	var worker *mountSpec
	if volume := holder.Volumes[workerDir]; volume != "" {
		worker = &mountSpec{Kind: volumeMount, Source: volume, Target: workerDir, ReadOnly: true, NoCopy: true}
	}
	s := b.spec(binding, d, e, worker, "")
	s.Name = binding.Environment + "-" + b.random()[:8]
	s.Image = holder.Image // whatever its name means by now
	s.Labels[labelKind] = kindCall
	s.Args = callArgs(binding)
	s.AutoRemove, s.Interactive, s.NoLog = true, true, true
	if s.Tmpfs == nil {
		s.Tmpfs = map[string]string{}
	}
	// What the worker and commands have for the time of the call: memory, since a
	// volume would first have to be given to the container's user.
	s.Tmpfs[stateDir] = tmpfsOptions(profile.Profile{TmpfsSize: p.TmpfsSize})
	mounts := s.Mounts[:0]
	for _, m := range s.Mounts {
		switch {
		case m.Target == stateDir:
			continue
		case m.Target == p.Workspace && m.Kind == volumeMount:
			m.Source, m.NoCopy, m.Labels = holder.Volumes[p.Workspace], true, nil
		}
		mounts = append(mounts, m)
	}
	s.Mounts = mounts
	return s
}

// Attach finds nothing: a container that was lost is gone with its call.
func (h *callHost) Attach(context.Context, backends.Binding) error { return h.lost() }

// Dial gives away the streams of the container's process.
func (h *callHost) Dial(context.Context, backends.Binding) (remote.Stream, error) {
	if h.given {
		return remote.Stream{}, h.lost()
	}
	h.given = true
	return remote.Stream{ReadWriteCloser: h.stream}, nil
}

// lost is the error of a container that ended before its call. It is not
// retryable: nobody reaches this one again.
func (h *callHost) lost() error {
	failure := tool.Errorf(tool.BackendUnavailable, "the container of the call ended before the call began")
	if said := h.stream.stderr.Line(); said != "" {
		failure = tool.Errorf(tool.BackendUnavailable, "the container of the call ended before the call began: %s", said)
	}
	return failure.WithHint("call again: each call has a container of its own")
}

// gone returns when the container is gone. One whose input has ended goes by
// itself, sooner than it could be killed.
func (h *callHost) gone(ctx context.Context) {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), selfRemoval)
	defer cancel()
	if err := h.engine.gone(bounded, h.id); err != nil {
		h.backend.discard(ctx, h.engine, h.id)
	}
}

// hangUp closes the streams, should nobody have them.
func (h *callHost) hangUp() {
	if h.stream != nil && !h.given {
		h.stream.Close()
	}
}

// Remove removes the container.
func (h *callHost) Remove(ctx context.Context, _ backends.Binding) error {
	h.hangUp()
	return removeAndWait(ctx, h.engine, h.id)
}

// removeCalls removes the containers of calls that a service which died has left,
// or which are under way. They hold the workspace's volume.
func (h *host) removeCalls(ctx context.Context, b backends.Binding) error {
	found, err := h.engine.containers(ctx, labelKind+"="+kindCall, labelStore+"="+b.Store, labelEnvironment+"="+b.Environment)
	if err != nil {
		return err
	}
	var all []error
	for _, c := range found {
		all = append(all, removeAndWait(ctx, h.engine, c.ID))
	}
	return errors.Join(all...)
}
