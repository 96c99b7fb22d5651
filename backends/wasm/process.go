package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/self"
)

// engineProcess is the engine of one environment: started when it is needed, ended
// when it was not for the profile's lifetime, and started again after it died.
type engineProcess struct {
	backend *Backend
	at      backends.Binding
	setup   engine.Setup

	// starting is held, by having put an element in, while an engine is started or
	// ended.
	starting chan struct{}

	mu      sync.Mutex
	current *running
	users   int         // calls of current
	idle    *time.Timer // ends current
	closed  bool
	problem string         // why nothing is kept in the cache
	ended   chan struct{}  // closed when closed is set
	ending  sync.WaitGroup // of engines that are let go of
}

// running is one engine.
type running struct {
	program *program.Program
	client  *wire.Client
	said    *engine.Said

	// Guarded by the mu of its engineProcess: its calls, whether it gets no more of
	// them, and what is closed when then the last one has ended.
	users   int
	retired bool
	unused  chan struct{}
}

func newEngineProcess(b *Backend, at backends.Binding, mounts []engine.Mount) *engineProcess {
	return &engineProcess{
		backend: b, at: at,
		setup: engine.Setup{
			CacheDir: b.o.CacheDir, Mounts: mounts,
			MemoryPages: at.Profile.MaxMemoryPages, MaxCompile: int64(compileTime),
			Environment: at.Secrets.Environment,
		},
		starting: make(chan struct{}, 1),
		ended:    make(chan struct{}),
	}
}

// call makes one request of the engine, and tells which one answered. An engine that died before it got the
// request is replaced; one that dies over it is not asked again.
func (p *engineProcess) call(ctx context.Context, method string, data any, body []byte) (wire.Reply, *running, error) {
	for again := false; ; again = true {
		r, err := p.acquire(ctx)
		if err != nil {
			return wire.Reply{}, nil, err
		}
		reply, err := r.client.Call(ctx, method, data, body)
		dead := r.client.Err() != nil
		if dead {
			p.drop(r)
		}
		p.release(r)
		switch {
		case err == nil:
			return reply, r, nil
		case dead && !again && errors.Is(err, wire.ErrNotSent) && ctx.Err() == nil:
			continue
		case dead && ctx.Err() == nil:
			err = r.died(err)
		}
		return wire.Reply{}, r, err
	}
}

// acquire returns the engine, which is started where there is none.
func (p *engineProcess) acquire(ctx context.Context) (*running, error) {
	if r, err := p.use(); r != nil || err != nil {
		return r, err
	}
	select {
	case p.starting <- struct{}{}:
		defer func() { <-p.starting }()
	case <-ctx.Done():
		return nil, contextError(ctx)
	}
	if r, err := p.use(); r != nil || err != nil {
		return r, err
	}
	r, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		p.letGo(r)
		return nil, backends.ErrDetached()
	}
	p.current = r
	p.users++ // also where it has died by now: the caller finds out
	return r, nil
}

// use counts a call of the engine that there is.
func (p *engineProcess) use() (*running, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, backends.ErrDetached()
	}
	r := p.current
	if r == nil {
		return nil, nil
	}
	if r.client.Err() != nil {
		p.current = nil
		p.letGo(r)
		return nil, nil
	}
	p.users++
	r.users++
	if p.idle != nil {
		p.idle.Stop()
		p.idle = nil
	}
	return r, nil
}

// release ends a call. The last one starts the idle time.
func (p *engineProcess) release(of *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	if of.users--; of.retired && of.users == 0 {
		close(of.unused)
	}
	if p.users > 0 || p.current == nil || p.at.Profile.Lifetime <= 0 {
		return
	}
	r := p.current
	p.idle = time.AfterFunc(p.at.Profile.Lifetime, func() { p.endIdle(r) })
}

func (p *engineProcess) endIdle(r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.users == 0 && p.current == r {
		p.current = nil
		p.letGo(r)
	}
}

// drop forgets an engine that has died.
func (p *engineProcess) drop(r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == r {
		p.current = nil
		p.letGo(r)
	}
}

// retire gives an engine no more calls, and ends it after those that it has.
func (p *engineProcess) retire(r *running) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != r {
		return // it has ended, or will
	}
	p.current = nil
	if r.retired = true; r.users == 0 {
		close(r.unused)
	}
	p.ending.Go(func() {
		select {
		case <-r.unused:
		case <-p.ended:
		}
		p.end(r)
	})
}

// letGo has an engine end. The caller holds mu.
func (p *engineProcess) letGo(r *running) {
	p.ending.Go(func() { p.end(r) })
}

func (p *engineProcess) end(r *running) {
	if err := r.client.Close(); err != nil {
		p.backend.o.Log.Debug("a WebAssembly engine ended badly", "error", err)
	}
}

// cacheProblem is why the last engine keeps nothing in the cache, in words.
func (p *engineProcess) cacheProblem() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.problem
}

// close ends the engine, and every call with it.
func (p *engineProcess) close() error {
	p.mu.Lock()
	if !p.closed {
		close(p.ended)
	}
	p.closed = true
	r := p.current
	p.current = nil
	if p.idle != nil {
		p.idle.Stop()
	}
	p.mu.Unlock()
	var err error
	if r != nil {
		err = r.client.Close()
		var exit *program.ExitError
		if errors.As(err, &exit) {
			err = nil // it was told to, whatever it did then
		}
	}
	p.ending.Wait()
	return err
}

// start starts an engine and tells it what it needs to know.
func (p *engineProcess) start(ctx context.Context) (*running, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	executable, err := p.backend.executable()
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the WebAssembly engine cannot be started: %w", err)
	}
	r := &running{said: &engine.Said{Max: maxSaid}, unused: make(chan struct{})}
	r.program, err = p.launch(program.Options{
		Path:   executable,
		Argv:   []string{self.Name(executable), engine.Command},
		Env:    append([]string{}, p.backend.o.Environment...),
		Dir:    "/",
		Stderr: r.said,
		Grace:  stopGrace,
	})
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the WebAssembly engine cannot be started: %w", err).
			WithHint("if the program was replaced or moved, restart the service")
	}
	r.client = wire.NewClient(r.program, wire.ClientOptions{CancelGrace: cancelGrace, Log: p.backend.o.Log})
	if err := p.prepare(ctx, r); err != nil {
		return nil, errors.Join(err, r.client.Close())
	}
	return r, nil
}

func (p *engineProcess) prepare(ctx context.Context, r *running) error {
	_, err := r.client.Initialize(ctx, wire.Initialize{Root: p.at.StateDir, Session: p.at.Session})
	if err != nil {
		return tool.Errorf(tool.KindOf(err), "start the WebAssembly engine: %w%s", err, tail(r.said))
	}
	reply, err := r.client.Call(ctx, engine.MethodSetup, p.setup, nil)
	if err != nil {
		return err
	}
	var ready engine.Ready
	if err := reply.Decode(&ready); err != nil {
		return err
	}
	p.mu.Lock()
	p.problem = ready.CacheProblem
	p.mu.Unlock()
	if ready.CacheProblem != "" {
		p.backend.o.Log.Warn("compiled WebAssembly modules are not kept", "reason", ready.CacheProblem)
	}
	return nil
}

// died is the error of a call that the engine died over.
func (r *running) died(err error) error {
	how := "it does not answer any more"
	if r.program.ExitedWithin(exitWait) {
		how = "it ended by itself"
		if exit := r.program.Err(); exit != nil {
			how = exit.Error()
		}
	}
	text := r.said.String()
	if strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") {
		return &tool.Error{
			Kind: tool.GuestFailed, Reason: tool.OutOfMemory, Err: err,
			Message: "the WebAssembly engine had no more memory and ended with all that ran in it" + tail(r.said),
			Hint:    "lower max_memory_pages, or run less at once; what the module had written is there",
		}
	}
	return &tool.Error{
		Kind: tool.OutcomeUnknown, Err: err,
		Message: fmt.Sprintf("the WebAssembly engine died while the module ran (%s)%s", how, tail(r.said)),
		Hint:    "look at what the module may have written before you repeat the call; the next one starts another engine",
	}
}

func contextError(ctx context.Context) error {
	return tool.Errorf(tool.EndKind(ctx), "waited for the WebAssembly engine: %w", context.Cause(ctx))
}

// tail is what the engine said, for the end of a message.
func tail(said *engine.Said) string {
	first, _, _ := strings.Cut(said.String(), "\n")
	if first == "" {
		return ""
	}
	return "; it said: " + first
}
