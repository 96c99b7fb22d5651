package session_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// world stands for everything outside the service: environments live on in it
// when a manager is gone.
type world struct {
	mu     sync.Mutex
	places map[string]*place
	opens  []backends.Binding // in order
	gone   []string           // identities that were removed
	fail   []error            // what the next calls of Open fail with
	// block, when set, makes Open wait for it or its context.
	block chan struct{}
	// entered gets a value at each Open, when set.
	entered chan struct{}
	// waiting gets a value at each call of "wait", when set.
	waiting chan struct{}
	// shutdownErr is what Shutdown fails with.
	shutdownErr, removeErr error
	// forgetErr is what Forget fails with, after the session's part was ended.
	forgetErr   error
	forgotten   []string // sessions, in the order in which environments forgot them
	noFiles     bool     // environments offer no FileSystem
	exported    []string // tokens, in the order of their fetching
	loseExports int      // how many of the next snapshots are gone before they are fetched
	// away are the profiles whose environments cannot be reached, and how that is told.
	away   map[string]error
	pruned backends.PruneOptions // the last
	// refuse and lose are what the next calls of tools fail with: before they did
	// anything, and after.
	refuse, lose []error
	// loseProcess is how many of the next requests about processes are lost after
	// they were done; asked are those requests, in order.
	loseProcess int
	asked       []string
	waits       []time.Duration // of reads of output
	// described is how often an environment was asked for its tools.
	described int
	called    []string      // tools, in order
	timeout   time.Duration // of the last call
	jobs      []ranJob      // in order
	startErr  error
}

// place is one environment of the world.
type place struct {
	files     map[string]string
	processes map[string]*tool.Process
	order     []string
	output    map[string][]byte
	exports   map[string][]byte
	envs      map[string]*doubleEnvironment // by session
}

func newWorld() *world { return &world{places: map[string]*place{}} }

// backend is a double of the kind in the world.
func (w *world) backend(kind string) backends.Backend { return &doubleBackend{w, kind} }

// doubleBackend is an in-memory backend, a test double.
type doubleBackend struct {
	w    *world
	kind string
}

func (d *doubleBackend) Kind() string { return d.kind }

func (d *doubleBackend) Check(context.Context, profile.Profile) backends.Health {
	return backends.Health{OK: true, Checks: []backends.Check{{Name: "double", OK: true}}}
}

// Machine takes another daemon for another machine.
func (d *doubleBackend) Machine(p profile.Profile) (string, error) { return p.DockerHost, nil }

func (d *doubleBackend) Probe(context.Context) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if len(d.w.fail) > 0 {
		return d.w.fail[0]
	}
	return nil
}

func (d *doubleBackend) Open(ctx context.Context, b backends.Binding, p backends.Progress) (backends.Environment, error) {
	w := d.w
	w.mu.Lock()
	w.opens = append(w.opens, b)
	block, entered := w.block, w.entered
	var fail error
	if len(w.fail) > 0 {
		fail, w.fail = w.fail[0], w.fail[1:]
	}
	if away := w.away[b.Profile.Name]; away != nil {
		fail = away
	}
	w.mu.Unlock()
	if entered != nil {
		entered <- struct{}{}
	}
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return nil, tool.Errorf(tool.Cancelled, "the opening was cancelled: %w", ctx.Err())
		}
	}
	if fail != nil {
		return nil, fail
	}
	p.Report("opening " + b.Environment)
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.places[b.Environment]
	switch {
	case at == nil && b.Provisioned:
		return nil, tool.Errorf(tool.EnvironmentLost, "the environment %s is gone", b.Environment)
	case at == nil:
		at = &place{
			files: map[string]string{}, processes: map[string]*tool.Process{}, output: map[string][]byte{},
			exports: map[string][]byte{}, envs: map[string]*doubleEnvironment{},
		}
		w.places[b.Environment] = at
	}
	e := &doubleEnvironment{w: w, at: at, b: b, kind: d.kind, detached: make(chan struct{})}
	at.envs[b.Session] = e
	if w.noFiles {
		return struct{ backends.Environment }{e}, nil
	}
	return e, nil
}

func (d *doubleBackend) Remove(_ context.Context, b backends.Binding) error {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	if err := cmp.Or(d.w.away[b.Profile.Name], d.w.removeErr); err != nil {
		return err
	}
	delete(d.w.places, b.Environment)
	d.w.gone = append(d.w.gone, b.Environment)
	return nil
}

func (d *doubleBackend) Prune(_ context.Context, o backends.PruneOptions) ([]backends.Resource, error) {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	d.w.pruned = o
	var found []backends.Resource
	for identity, at := range d.w.places {
		if o.Live[identity] || !slices.ContainsFunc(slices.Collect(maps.Values(at.envs)), func(e *doubleEnvironment) bool { return e.kind == d.kind }) {
			continue
		}
		found = append(found, backends.Resource{Backend: d.kind, Kind: "place", ID: identity, Environment: identity})
		if !o.DryRun {
			delete(d.w.places, identity)
		}
	}
	return found, nil
}

// env is the environment that a session has in the world.
func (w *world) env(identity, session string) *doubleEnvironment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[identity].envs[session]
}

// last is the environment as its only session has opened it last; nil when it is gone.
func (w *world) last(identity string) *doubleEnvironment {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := w.places[identity]
	if at == nil {
		return nil
	}
	for _, e := range at.envs {
		return e
	}
	return nil
}

// lose removes an environment behind everybody's back.
func (w *world) destroy(identity string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.places, identity)
}

func (w *world) has(identity string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.places[identity] != nil
}

// opened is how often, and with which bindings, Open was called.
func (w *world) opened() []backends.Binding {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.opens)
}

// lastTimeout is the time that the last call of a tool was given.
func (w *world) lastTimeout() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.timeout
}

func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// doubleEnvironment is one session's connection to a place.
type doubleEnvironment struct {
	w    *world
	at   *place
	b    backends.Binding
	kind string

	once     sync.Once
	detached chan struct{}
	ended    bool // Shutdown was called; guarded by the world's mu

	mu   sync.Mutex
	subs map[*doubleSubscription]bool
}

func (e *doubleEnvironment) Info() backends.Info {
	root := "/double"
	switch {
	case e.b.Profile.HostWorkspace != "":
		root = e.b.Profile.Workspace
	case e.kind == profile.WASM:
		root = "/"
	}
	return backends.Info{Backend: e.kind, Environment: e.b.Environment, Root: root}
}

func (e *doubleEnvironment) Tools(context.Context) ([]tool.Description, error) {
	e.w.set(func() { e.w.described++ })
	if e.kind == profile.WASM {
		return []tool.Description{{Name: "lint", Group: tool.GroupPlugins}}, nil
	}
	if e.b.Profile.Name == "full" {
		return []tool.Description{
			{Name: "read_file", Group: tool.GroupFile, Annotations: tool.Annotations{ReadOnly: true}},
			{Name: "write_file", Group: tool.GroupFile}, {Name: "grep", Group: tool.GroupSearch}, {Name: "bash", Group: tool.GroupShell},
			{Name: "git", Group: tool.GroupGit}, {Name: "process", Group: tool.GroupProcess}, {Name: "own"},
		}, nil
	}
	return []tool.Description{
		{Name: "read_file", Group: tool.GroupFile, Annotations: tool.Annotations{ReadOnly: true}},
		{Name: "write_file", Group: tool.GroupFile},
		{Name: "bash", Group: tool.GroupShell},
		{Name: "present_artifact", Group: tool.GroupArtifact, Annotations: tool.Annotations{ReadOnly: true}},
	}, nil
}

// Call has a few tools: "request" answers the request itself, "wait" ends with
// its context, "fail" fails with the kind of its argument.
func (e *doubleEnvironment) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	next := func(list *[]error) (err error) {
		e.w.set(func() {
			if len(*list) > 0 {
				err, *list = (*list)[0], (*list)[1:]
			}
		})
		return err
	}
	e.w.set(func() { e.w.called, e.w.timeout = append(e.w.called, r.Name), r.Timeout })
	if err := next(&e.w.refuse); err != nil {
		return tool.Result{}, err
	}
	result, err := e.call(ctx, r)
	if lost := next(&e.w.lose); lost != nil {
		return tool.Result{}, lost
	}
	return result, err
}

func (e *doubleEnvironment) call(ctx context.Context, r tool.Request) (tool.Result, error) {
	var a struct{ Path, Content, Kind string }
	if err := json.Unmarshal(r.Arguments, &a); err != nil {
		return tool.Result{}, tool.Errorf(tool.InvalidParams, "%w", err)
	}
	switch r.Name {
	case "wait":
		e.w.mu.Lock()
		waiting := e.w.waiting
		e.w.mu.Unlock()
		if waiting != nil {
			waiting <- struct{}{}
		}
		select {
		case <-ctx.Done():
		case <-e.detached:
		}
		select {
		case <-e.detached: // Detach has ended every call before anything else can
			return tool.Result{}, tool.Errorf(tool.OutcomeUnknown, "the connection was lost")
		default:
			return tool.Result{}, tool.Errorf(tool.Cancelled, "cancelled: %w", context.Cause(ctx))
		}
	case "fail":
		return tool.Result{}, tool.Errorf(tool.Kind(a.Kind), "failed as asked")
	case "bash", "git", "grep", "lint", "own":
		if r.Name == "lint" && e.kind != profile.WASM || r.Name == "own" && e.b.Profile.Name != "full" {
			break
		}
		return tool.Result{StructuredContent: json.RawMessage(`{"environment":"` + e.b.Environment + `"}`)}, nil
	case "process":
		if e.b.Profile.ContainerPolicy == profile.PolicyPerCall {
			return tool.Result{}, tool.Errorf(tool.Unsupported, "there are no background processes")
		}
		list, _ := e.List(ctx)
		raw, err := json.Marshal(map[string]any{"processes": list, "environment": e.b.Environment})
		return tool.Result{StructuredContent: raw}, err
	case "request":
		raw, err := json.Marshal(r)
		return tool.Result{StructuredContent: raw}, err
	case "write_file":
		e.w.set(func() { e.at.files[a.Path] = a.Content })
		return tool.Result{StructuredContent: json.RawMessage(`{"path":"` + a.Path + `"}`)}, nil
	case "read_file":
		e.w.mu.Lock()
		defer e.w.mu.Unlock()
		content, ok := e.at.files[a.Path]
		if !ok {
			return tool.Failed("no such file"), nil
		}
		raw, err := json.Marshal(map[string]string{"path": a.Path, "content": content})
		return tool.Result{StructuredContent: raw}, err
	case "present_artifact":
		return e.snapshot(a.Path)
	}
	return tool.Result{}, tool.Errorf(tool.ToolNotFound, "there is no tool %q", r.Name)
}

func (e *doubleEnvironment) snapshot(path string) (tool.Result, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	content, ok := e.at.files[path]
	if !ok {
		return tool.Failed("no such file"), nil
	}
	token := fmt.Sprintf("token-%d", len(e.at.exports))
	e.at.exports[token] = []byte(content)
	size := len(content)
	if strings.HasPrefix(content, "huge") {
		size = 257 << 20
	}
	if strings.HasPrefix(content, "liar") {
		size++
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	text := fmt.Sprintf(`{"execution_export":%q,"name":%q,"size":%d}`, token, name, size)
	return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: text}}}, nil
}

func (e *doubleEnvironment) Export(_ context.Context, token string) (io.ReadCloser, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.exported = append(e.w.exported, token)
	if e.w.loseExports > 0 {
		e.w.loseExports--
		return nil, tool.Errorf(tool.ArtifactNotFound, "there is no export with this token")
	}
	return io.NopCloser(bytes.NewReader(e.at.exports[token])), nil
}

func (e *doubleEnvironment) Detach(context.Context) error {
	e.once.Do(func() {
		close(e.detached)
		e.mu.Lock()
		defer e.mu.Unlock()
		for s := range e.subs {
			close(s.events)
		}
		e.subs = nil
	})
	return nil
}

func (e *doubleEnvironment) Shutdown(context.Context) error {
	e.w.mu.Lock()
	e.ended = true
	err := cmp.Or(e.w.away[e.b.Profile.Name], e.w.shutdownErr)
	if errors.Is(err, backends.ErrStopped) {
		err = nil // nothing is left to end
	}
	var ended []tool.Process
	if err == nil {
		for _, p := range e.at.processes {
			if p.RootThreadID == e.b.Session && !p.Status.Terminal() {
				p.Status, p.Signal, p.OutputClosed = tool.ProcessStopped, "SIGTERM", true
				ended = append(ended, *p)
			}
		}
	}
	e.w.mu.Unlock()
	for _, p := range ended {
		e.send(backends.Event{Process: &tool.ProcessEvent{Type: tool.EventStopped, Cause: tool.CauseRequestedStop, Process: p}})
	}
	return err
}

func (e *doubleEnvironment) Forget(ctx context.Context) error {
	if err := e.Shutdown(ctx); err != nil {
		return err
	}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if err := e.w.away[e.b.Profile.Name]; err != nil {
		return err
	}
	if e.w.forgetErr == nil {
		e.w.forgotten = append(e.w.forgotten, e.b.Session)
	}
	return e.w.forgetErr
}

func (e *doubleEnvironment) Stat(_ context.Context, path string) (backends.FileInfo, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	content, ok := e.at.files[path]
	if !ok {
		return backends.FileInfo{}, tool.Errorf(tool.Internal, "no such file").WithPath(path)
	}
	return backends.FileInfo{Name: path, Path: path, Type: "file", Size: int64(len(content))}, nil
}

func (e *doubleEnvironment) ReadDirectory(context.Context, string) ([]backends.FileInfo, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	var list []backends.FileInfo
	for _, name := range slices.Sorted(maps.Keys(e.at.files)) {
		list = append(list, backends.FileInfo{Name: name, Path: name, Type: "file"})
	}
	return list, nil
}

func (e *doubleEnvironment) ReadFile(_ context.Context, path string, offset, length int64) ([]byte, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	content := []byte(e.at.files[path])
	content = content[min(offset, int64(len(content))):]
	if length >= 0 {
		content = content[:min(length, int64(len(content)))]
	}
	return content, nil
}

func (e *doubleEnvironment) WriteFile(ctx context.Context, path string, data []byte) (backends.FileInfo, error) {
	e.w.set(func() { e.at.files[path] = string(data) })
	return e.Stat(ctx, path)
}

func (e *doubleEnvironment) Events() backends.Events { return e }

// doubleSubscription is a queue that Next reports as overrun when told so.
type doubleSubscription struct {
	e      *doubleEnvironment
	events chan backends.Event
}

func (e *doubleEnvironment) Subscribe() backends.Subscription {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &doubleSubscription{e: e, events: make(chan backends.Event, 1000)}
	if e.subs == nil {
		e.subs = map[*doubleSubscription]bool{}
	}
	e.subs[s] = true
	return s
}

// overrun is the event that makes Next say that its caller fell behind.
var overrun = backends.Event{State: &backends.StateChange{State: "overrun"}}

func (s *doubleSubscription) Next(ctx context.Context) (backends.Event, error) {
	select {
	case v, ok := <-s.events:
		switch {
		case !ok:
			return v, tool.Errorf(tool.Cancelled, "detached")
		case v.State != nil && v.State.State == "overrun":
			return v, tool.Errorf(tool.Overloaded, "the subscriber fell behind")
		}
		return v, nil
	case <-ctx.Done():
		return backends.Event{}, ctx.Err()
	}
}

func (s *doubleSubscription) Close() {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	delete(s.e.subs, s)
}

// send passes an event to every subscriber.
func (e *doubleEnvironment) send(v backends.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.subs {
		s.events <- v
	}
}

func (e *doubleEnvironment) Processes() backends.Processes { return e }

func (e *doubleEnvironment) Start(_ context.Context, r tool.StartRequest) (tool.Process, error) {
	e.w.mu.Lock()
	lost := e.w.startErr
	e.w.startErr = nil
	if tool.KindOf(lost) == tool.Denied {
		e.w.mu.Unlock()
		return tool.Process{}, lost
	}
	// One that is not of our form, as adapters make them, when its label says so.
	id := fmt.Sprintf("p-%020d", len(e.at.processes)+22222)
	id = strings.NewReplacer("0", "a", "1", "b", "8", "c", "9", "d").Replace(id)
	if r.Label == "foreign" {
		id = fmt.Sprint(len(e.at.processes))
	}
	p := &tool.Process{
		ID: id, OperationID: r.OperationID, OwnerID: r.Actor, OwnerKind: tool.OwnerMainAgent, RootThreadID: e.b.Session,
		Status: tool.ProcessRunning, PID: 1000 + len(e.at.processes), Command: r.Command, Argv: r.Argv, CWD: "/double",
		ExitCode: -1, Label: r.Label, SandboxMode: r.PermissionMode, TTY: r.TTY,
		StartedAt: time.Unix(int64(len(e.at.processes)), 0),
	}
	if r.Actor != e.b.Session {
		p.OwnerKind, p.ActorKind = tool.OwnerSubagent, r.ActorKind
	}
	e.at.processes[id] = p
	e.at.order = append(e.at.order, id)
	started := *p
	e.w.mu.Unlock()
	e.send(backends.Event{Process: &tool.ProcessEvent{Type: tool.EventStarted, Process: started}})
	if lost != nil {
		return tool.Process{}, lost
	}
	return started, nil
}

// change changes a process, with an event or without.
func (e *doubleEnvironment) change(id string, event tool.ProcessEventType, f func(p *tool.Process)) {
	e.w.mu.Lock()
	p := e.at.processes[id]
	f(p)
	changed := *p
	e.w.mu.Unlock()
	if event != "" {
		e.send(backends.Event{Process: &tool.ProcessEvent{Type: event, Process: changed}})
	}
}

// answer is what is left to say of a request about processes, which was done.
func (e *doubleEnvironment) answer(name string) error {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.asked = append(e.w.asked, name)
	if e.w.loseProcess == 0 {
		return nil
	}
	e.w.loseProcess--
	return lost()
}

func (e *doubleEnvironment) List(context.Context) ([]tool.Process, error) {
	if err := e.answer("list"); err != nil {
		return nil, err
	}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	var all []tool.Process
	for _, id := range slices.Backward(e.at.order) {
		if p := e.at.processes[id]; p.RootThreadID == e.b.Session {
			all = append(all, *p)
		}
	}
	return all, nil
}

func (e *doubleEnvironment) Get(_ context.Context, id string) (tool.Process, error) {
	if err := e.answer("get"); err != nil {
		return tool.Process{}, err
	}
	return e.find(id)
}

func (e *doubleEnvironment) find(id string) (tool.Process, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if p := e.at.processes[id]; p != nil && p.RootThreadID == e.b.Session {
		return *p, nil
	}
	return tool.Process{}, tool.Errorf(tool.ProcessNotFound, "there is no process %q", id)
}

func (e *doubleEnvironment) Read(_ context.Context, id string, o tool.ReadOptions) (tool.ReadResult, error) {
	p, err := e.find(id)
	if err == nil {
		err = e.answer("read")
	}
	if err != nil {
		return tool.ReadResult{}, err
	}
	e.w.set(func() { e.w.waits = append(e.w.waits, o.Wait) })
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	all := e.at.output[id]
	total := int64(len(all))
	start := max(0, total-int64(o.MaxBytes))
	if o.OffsetBytes != nil {
		start = min(*o.OffsetBytes, total)
	}
	end := min(total, start+int64(o.MaxBytes))
	return tool.ReadResult{Process: p, Output: all[start:end], StartOffset: start, EndOffset: end, TotalBytes: total}, nil
}

func (e *doubleEnvironment) Write(_ context.Context, id string, data []byte) (tool.Process, error) {
	if p, err := e.find(id); err != nil {
		return p, err
	}
	e.w.set(func() { e.at.output[id] = append(e.at.output[id], data...) })
	if err := e.answer("write"); err != nil {
		return tool.Process{}, err
	}
	return e.find(id)
}

func (e *doubleEnvironment) CloseStdin(_ context.Context, id string) (tool.Process, error) {
	if err := e.answer("close_stdin"); err != nil {
		return tool.Process{}, err
	}
	return e.find(id)
}

func (e *doubleEnvironment) Resize(_ context.Context, id string, size tool.TTY) (tool.Process, error) {
	if p, err := e.find(id); err != nil {
		return p, err
	}
	e.change(id, tool.EventUpdated, func(p *tool.Process) { p.TTY = &size })
	if err := e.answer("resize"); err != nil {
		return tool.Process{}, err
	}
	return e.find(id)
}

func (e *doubleEnvironment) Signal(_ context.Context, id, signal string) (tool.Process, error) {
	if p, err := e.find(id); err != nil {
		return p, err
	}
	e.change(id, tool.EventStopped, func(p *tool.Process) { p.Status, p.Signal = tool.ProcessStopped, signal })
	if err := e.answer("signal"); err != nil {
		return tool.Process{}, err
	}
	return e.find(id)
}

func (e *doubleEnvironment) Stop(ctx context.Context, id string) (tool.Process, error) {
	if p, err := e.find(id); err != nil {
		return p, err
	}
	return e.Signal(ctx, id, "SIGTERM")
}
