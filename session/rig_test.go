package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
	"github.com/caisson-dev/caisson/session/config"
	"github.com/caisson-dev/caisson/session/plugins"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

// rig is a state directory with a configuration, a world and services on it.
type rig struct {
	t      testing.TB
	dir    string
	folder string // an opened folder
	config string // the user's file
	world  *world
	// programs, unless it is nil, is what docker environments run programs with.
	programs *programs
	more     []backends.Backend // beside local and docker
	vars     []string
	now      func() time.Time // the services' clock; nil is the real one
	// localBackend and dockerBackend, unless they are nil, take the place of the world's.
	localBackend, dockerBackend backends.Backend
	// plugins, unless it is nil, keeps registered tools.
	plugins *plugins.Store
}

const defaultConfig = `{
	"execution_environments": {"profiles": {
		"box": {"backend": "docker", "image": "a"},
		"kept": {"backend": "docker", "image": "a", "persistent": true},
		"shared": {"backend": "docker", "image": "a", "shared": true},
		"both": {"backend": "docker", "image": "a", "shared": true, "persistent": true},
		"mounted": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}"},
		"mounted-kept": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "persistent": true},
		"forward": {"backend": "docker", "image": "a", "forward_env": ["TOKEN"]},
		"far": {"backend": "ssh", "host": "h"},
	}},
	"execution": {"retry_backoff": "1ms", "timeout": "1m", "max_output_bytes": 1000},
}`

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), folder: t.TempDir(), world: newWorld(), vars: []string{"TOKEN=s3cret"}}
	r.config = filepath.Join(t.TempDir(), "config.json")
	r.write(r.config, defaultConfig)
	return r
}

func (r *rig) write(file, text string) {
	r.t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// service is one manager with what it told its sink.
type service struct {
	*session.Manager
	t     testing.TB
	rig   *rig
	sink  *recorder
	store *artifacts.Store
}

// start starts a service, which the test's end shuts down.
func (r *rig) start() *service {
	r.t.Helper()
	return r.startWith(config.File(r.config))
}

// local is the backend of that kind.
func (r *rig) local() backends.Backend {
	if r.localBackend != nil {
		return r.localBackend
	}
	return r.world.backend(profile.Local)
}

// docker is the backend of that kind, whose environments run programs when the
// test wants them to.
func (r *rig) docker() backends.Backend {
	if r.dockerBackend != nil {
		return r.dockerBackend
	}
	if r.programs == nil {
		return r.world.backend(profile.Docker)
	}
	r.programs.Backend = r.world.backend(profile.Docker)
	return r.programs
}

// startWith starts a service with another configuration.
func (r *rig) startWith(c config.Source) *service {
	r.t.Helper()
	store, err := artifacts.Open(filepath.Join(r.dir, "artifacts"), artifacts.Options{})
	if err != nil {
		r.t.Fatal(err)
	}
	s := &service{t: r.t, rig: r, sink: newRecorder(), store: store}
	s.Manager, err = session.New(session.Options{
		StateDir: filepath.Join(r.dir, "state"), RuntimeDir: filepath.Join(r.dir, "run"),
		Config:   c,
		Registry: backends.NewRegistry(append(r.more, r.local(), r.docker())...),
		// The store is opened by each service, as two processes would.
		Artifacts: store, Plugins: r.plugins, Sink: s.sink,
		Environ: func() []string { return r.vars },
		Now:     r.now,
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(s.stop)
	return s
}

// stop shuts the service down; a second time does nothing.
func (s *service) stop() {
	if s.Manager == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := errors.Join(s.Shutdown(ctx), s.store.Close()); err != nil {
		s.t.Error(err)
	}
	s.Manager = nil
}

// open opens a session that must open.
func (s *service) open(r session.OpenRequest) session.Session {
	s.t.Helper()
	v, _, err := s.Open(s.t.Context(), r, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// call makes a call that must succeed.
func (s *service) call(id, name, arguments string) session.CallResult {
	s.t.Helper()
	v, err := s.Call(s.t.Context(), session.CallRequest{SessionID: id, Name: name, Arguments: []byte(arguments)})
	if err != nil {
		s.t.Fatal(err)
	}
	return v
}

// env is the session's connection to the world.
func (s *service) env(v session.Session) *doubleEnvironment {
	return s.rig.world.env(v.EnvironmentID, v.ID)
}

// wantKind fails unless err is of the kind.
func wantKind(t *testing.T, err error, kind tool.Kind) {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) || e.Kind != kind {
		t.Errorf("got %v, not an error of kind %s", err, kind)
	}
}

// recorder is a sink that keeps everything.
type recorder struct {
	mu         sync.Mutex
	changed    chan struct{} // closed and replaced at each event
	states     map[string][]session.State
	seen       []session.Session // of other services
	removed    []string          // sessions
	relisted   int               // how often artifacts changed
	executions []string          // "started NAME", "completed NAME", "failed NAME KIND"
	failures   []session.Execution
	started    []session.Execution
	completed  []session.Execution
	processes  []session.ProcessEvent
	published  []artifacts.Artifact
	previews   []artifacts.Preview
	configs    []error
}

func newRecorder() *recorder {
	return &recorder{changed: make(chan struct{}), states: map[string][]session.State{}}
}

func (r *recorder) record(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *recorder) SessionChanged(s session.Session) {
	r.record(func() { r.states[s.ID] = append(r.states[s.ID], s.State) })
}

func (r *recorder) SessionSeen(s session.Session) {
	r.record(func() { r.seen = append(r.seen, s) })
}

func (r *recorder) SessionRemoved(id string) {
	r.record(func() { r.removed = append(r.removed, id) })
}

func (r *recorder) ExecutionStarted(x session.Execution) {
	r.record(func() {
		r.executions = append(r.executions, "started "+x.Tool)
		r.started = append(r.started, x)
	})
}

func (r *recorder) ExecutionCompleted(x session.Execution) {
	r.record(func() {
		r.executions = append(r.executions, "completed "+x.Tool)
		r.completed = append(r.completed, x)
	})
}

func (r *recorder) ExecutionFailed(x session.Execution) {
	r.record(func() {
		r.executions = append(r.executions, "failed "+x.Tool+" "+string(tool.KindOf(x.Err)))
		r.failures = append(r.failures, x)
	})
}

func (r *recorder) Process(e session.ProcessEvent) {
	r.record(func() { r.processes = append(r.processes, e) })
}

func (r *recorder) Room(context.Context) {}

func (r *recorder) ArtifactPublished(a artifacts.Artifact, p artifacts.Preview) {
	r.record(func() {
		r.published = append(r.published, a)
		r.previews = append(r.previews, p)
	})
}

func (r *recorder) ArtifactsChanged() { r.record(func() { r.relisted++ }) }

func (r *recorder) ConfigChanged(err error) { r.record(func() { r.configs = append(r.configs, err) }) }

// config is what the i-th change of the configuration told.
func (r *recorder) config(i int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.configs[i]
}

// until waits until the condition, which is called under the lock, holds.
func (r *recorder) until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		holds, changed := condition(), r.changed
		r.mu.Unlock()
		if holds {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (r *recorder) statesOf(id string) []session.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.states[id])
}

func (r *recorder) executed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.executions)
}

// eventTypes lists the events of one process.
func (r *recorder) eventTypes(process string) []session.ProcessEventType {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.typesLocked(process)
}

func (r *recorder) typesLocked(process string) []session.ProcessEventType {
	var all []session.ProcessEventType
	for _, e := range r.processes {
		if e.Process.ID == process {
			all = append(all, e.Type)
		}
	}
	return all
}

// repeated lists the events of processes that were the second of their type.
func (r *recorder) repeated() []session.ProcessEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	type change struct {
		process string
		event   session.ProcessEventType
	}
	told := map[change]bool{}
	var again []session.ProcessEvent
	for _, e := range r.processes {
		c := change{e.Process.ID, e.Type}
		if told[c] {
			again = append(again, e)
		}
		told[c] = true
	}
	return again
}
