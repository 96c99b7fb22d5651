package engine

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os"
	"path"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// server answers the requests of the service.
type server struct {
	// turns holds an element for each guest that runs.
	turns chan struct{}

	mu    sync.Mutex
	state *state // nil before MethodSetup
}

// state is what MethodSetup makes.
type state struct {
	end         context.CancelFunc // of what compiles
	modules     *modules
	mounts      []mounted
	environment map[string]string
	spares      spares
}

func newServer() *server {
	// Two at least, so that a guest that takes its time stops nobody.
	return &server{turns: make(chan struct{}, max(2, runtime.GOMAXPROCS(0)))}
}

// Handle implements [wire.Handler].
func (s *server) Handle(ctx context.Context, r *wire.Request) (wire.Response, error) {
	switch r.Method {
	case wire.MethodInitialize:
		return initialize(r)
	case MethodSetup:
		var o Setup
		if err := r.Decode(&o); err != nil {
			return wire.Response{}, err
		}
		ready, err := s.setup(ctx, o)
		return wire.Response{Data: ready}, err
	case MethodRun:
		var o Run
		if err := r.Decode(&o); err != nil {
			return wire.Response{}, err
		}
		out, body, err := s.run(ctx, o, r.Body)
		return wire.Response{Data: out, Body: body}, err
	}
	return wire.Response{}, wire.UnknownMethod(r.Method)
}

func initialize(r *wire.Request) (wire.Response, error) {
	var in wire.Initialize
	if err := r.Decode(&in); err != nil {
		return wire.Response{}, err
	}
	return wire.Response{Data: wire.Initialized{
		Version: wire.Version, Root: in.Root, Capabilities: []string{wire.CapBulk, wire.CapErrors},
	}}, nil
}

// setup takes what all runs share. It is done once.
func (s *server) setup(ctx context.Context, o Setup) (ready Ready, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != nil {
		return ready, tool.Errorf(tool.InvalidParams, "the engine is set up already")
	}
	guests := uint64(cap(s.turns) + maxSpares)
	if err := confine(dataBase + guests*(dataGuest+uint64(o.MemoryPages)*PageSize)); err != nil {
		return ready, tool.Errorf(tool.BackendUnavailable, "limit the WebAssembly engine: %w", err)
	}
	c, err := openCache(o.CacheDir)
	if err != nil {
		ready.CacheProblem, c = err.Error(), nil
	}
	mounts, err := open(o.Mounts)
	if err != nil {
		return ready, err
	}
	// The runtime outlives this request.
	r, err := newRuntime(context.WithoutCancel(ctx), c)
	if err != nil {
		return ready, errors.Join(tool.Errorf(tool.BackendUnavailable, "start the WebAssembly engine: %w", err), closeAll(mounts))
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	most := time.Duration(o.MaxCompile)
	s.state = &state{
		end: end,
		modules: &modules{
			runtime: r, cache: c, compilers: newCompilers(life, most),
			compiling: make(chan struct{}, maxCompiling), most: most, all: make(map[string]*module),
		},
		mounts:      mounts,
		environment: o.Environment,
		spares:      spares{all: make(map[string]*spare)},
	}
	return ready, nil
}

// run runs one module in its turn.
func (s *server) run(ctx context.Context, o Run, stdin []byte) (Outcome, []byte, error) {
	s.mu.Lock()
	st := s.state
	s.mu.Unlock()
	switch {
	case st == nil:
		return Outcome{}, nil, tool.Errorf(tool.InvalidParams, "the engine is not set up")
	case len(o.Args) == 0:
		return Outcome{}, nil, tool.Errorf(tool.InvalidParams, "a program has a name").WithPath("args")
	case o.MemoryPages > math.MaxUint16+1:
		return Outcome{}, nil, tool.Errorf(tool.InvalidParams, "there are no more than 65536 pages").WithPath("memory_pages")
	}
	o.MaxOutput = min(o.MaxOutput, MaxOutput)
	code, release, err := st.modules.get(ctx, o.Path, o.SHA256)
	if errors.Is(err, errTooLong) {
		return Outcome{Ending: Uncompiled, Replace: errors.Is(err, errStuck), FuelRemaining: o.Fuel}, nil, nil
	}
	if err != nil {
		return Outcome{}, nil, err
	}
	own, err := open(o.Mounts)
	if err != nil {
		release()
		return Outcome{}, nil, err
	}
	defer closeAll(own) //nolint:errcheck // nothing was written through them
	instantiate := instantiator(st.modules.runtime, code, o, st.environment, all(st.mounts, own, o.ReadOnly))
	key := spareKey(o)
	out, body, err := s.inTurn(ctx, func() (Outcome, []byte, error) {
		g := st.spares.take(ctx, key)
		if g == nil {
			g = newGuest(o)
		}
		return g.run(ctx, o, stdin, instantiate)
	})
	if err != nil || out.Ending != Exited {
		release()
		return out, body, err
	}
	st.spares.keep(key, release, instantiate, o)
	return out, body, nil
}

// inTurn runs a guest when it is its turn.
func (s *server) inTurn(ctx context.Context, run func() (Outcome, []byte, error)) (Outcome, []byte, error) {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return Outcome{}, nil, ctx.Err()
	}
	return run()
}

// all are the mounts of one run: those of all runs, and its own, which come first
// and replace those at the same place.
func all(shared, own []mounted, readOnly bool) []mounted {
	mounts := slices.Clone(own)
	for _, m := range shared {
		if !slices.ContainsFunc(own, func(o mounted) bool { return o.at == m.at }) {
			m.readOnly = m.readOnly || readOnly
			mounts = append(mounts, m)
		}
	}
	for i := range mounts {
		mounts[i].same = slices.IndexFunc(mounts[:i], func(m mounted) bool {
			return m.root.Name() == mounts[i].root.Name() && m.readOnly == mounts[i].readOnly
		})
	}
	return mounts
}

// open opens directories of the host.
func open(mounts []Mount) ([]mounted, error) {
	var opened []mounted
	for _, m := range mounts {
		root, err := openOne(m)
		if err != nil {
			return nil, errors.Join(err, closeAll(opened))
		}
		opened = append(opened, mounted{at: path.Clean(m.Guest), root: root, readOnly: m.ReadOnly})
	}
	return opened, nil
}

func openOne(m Mount) (*os.Root, error) {
	root, err := os.OpenRoot(m.Host)
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the directory of a guest cannot be opened: %w", err).WithPath(m.Host)
	}
	info, err := root.Stat(".")
	if err == nil && m.File != "" && FileID(info) != m.File {
		err = errors.New("another directory is there now")
	}
	if err != nil {
		return nil, errors.Join(tool.Errorf(tool.EnvironmentLost, "the directory of a guest at %s: %w", m.Host, err).
			WithHint("bring it back, or open a new session").WithPath(m.Host), root.Close())
	}
	if cmp.Or(m.Below, ".") == "." {
		return root, nil
	}
	below, err := root.OpenRoot(m.Below)
	if err != nil {
		err = tool.Errorf(tool.InvalidParams, "the directory %s of a guest cannot be opened: %w", m.Below, err).WithPath("cwd")
	}
	return below, errors.Join(err, root.Close())
}

func closeAll(mounts []mounted) (err error) {
	for _, m := range mounts {
		err = errors.Join(err, m.root.Close())
	}
	return err
}

// close lets go of everything, after the last request.
func (s *server) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == nil {
		return nil
	}
	s.state.spares.close()
	s.state.end()
	s.state.modules.busy.Wait()
	return errors.Join(s.state.modules.runtime.Close(ctx), closeAll(s.state.mounts))
}
