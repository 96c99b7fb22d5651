package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/meter"
	"github.com/caisson-dev/caisson/diskfile"
)

// entry is the function that a command of WASI preview 1 begins with.
const entry = "_start"

// modules are the compiled modules, by the hash of what was in the file.
type modules struct {
	runtime wazero.Runtime
	cache   *cache
	// compilers compile into the cache. Without one, modules are compiled here: then
	// compiling holds an element for each, for at most most; 0 is no limit.
	compilers *compilers
	compiling chan struct{}
	most      time.Duration

	mu   sync.Mutex
	all  map[string]*module
	uses uint64 // counts, as a clock for last
	busy sync.WaitGroup
}

// module is one compiled module, or one that is being compiled.
type module struct {
	done chan struct{} // closed when code or err is set
	code wazero.CompiledModule
	err  error
	// Guarded by modules.mu.
	users int
	last  uint64
}

// isDone reports whether nothing is compiling it any more. One that failed is in no
// list by then.
func (m *module) isDone() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// get returns the compiled module for a run, which calls release when it is over.
// Compiling goes on when ctx ends: somebody will want it again.
func (ms *modules) get(ctx context.Context, path, sum string) (code wazero.CompiledModule, release func(), err error) {
	ms.mu.Lock()
	m := ms.all[sum]
	if m == nil {
		ms.evict(ctx)
		m = &module{done: make(chan struct{})}
		ms.all[sum] = m
		ms.busy.Go(func() {
			m.code, m.err = ms.compile(context.WithoutCancel(ctx), path, sum)
			if m.err != nil {
				ms.mu.Lock()
				delete(ms.all, sum) // another try may find another file
				ms.mu.Unlock()
			}
			close(m.done)
		})
	}
	m.users++
	ms.uses++
	m.last = ms.uses
	ms.mu.Unlock()
	release = func() {
		ms.mu.Lock()
		m.users--
		ms.mu.Unlock()
	}
	select {
	case <-m.done:
		if m.err == nil {
			return m.code, release, nil
		}
		err = m.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	release()
	return nil, nil, err
}

// evict makes room for one more. The caller holds mu.
func (ms *modules) evict(ctx context.Context) {
	for len(ms.all) >= maxCompiled {
		oldest := ""
		for sum, m := range ms.all {
			if m.users == 0 && m.isDone() && (oldest == "" || m.last < ms.all[oldest].last) {
				oldest = sum
			}
		}
		if oldest == "" {
			return // all of them run or are being compiled, and there are never many
		}
		m := ms.all[oldest]
		delete(ms.all, oldest)
		_ = m.code.Close(ctx) // gives memory back, and never fails
	}
}

// compile makes machine code of a module, or finds it in the cache. What is kept and
// damaged costs time only.
func (ms *modules) compile(ctx context.Context, path, sum string) (wazero.CompiledModule, error) {
	if ms.cache == nil {
		ms.compiling <- struct{}{}
		defer func() { <-ms.compiling }()
		return ms.compileInTime(ctx, path, sum)
	}
	code, err := ms.fromCache(ctx, path, sum)
	if errors.Is(err, errDamaged) {
		ms.cache.empty()
		code, err = ms.fromCache(ctx, path, sum)
	}
	return code, err
}

// errDamaged is a cache that does not hold what was put there.
var errDamaged = errors.New("the cache of compiled modules is damaged")

// fromCache has a module compiled, unless it is in the cache, and takes it from there.
func (ms *modules) fromCache(ctx context.Context, path, sum string) (wazero.CompiledModule, error) {
	metered, kept := ms.cache.load(sum)
	if !kept {
		if err := ms.compilers.compile(compilation{Path: path, SHA256: sum, CacheDir: ms.cache.parent()}); err != nil {
			return nil, err
		}
		if metered, kept = ms.cache.load(sum); !kept {
			return nil, tool.Errorf(tool.Internal, "the module %s was compiled, and is not in the cache", path).WithPath(path)
		}
	}
	code, err := ms.runtime.CompileModule(ctx, metered)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "compile the module %s with its metering: %w", path, errors.Join(errDamaged, err)).WithPath(path)
	}
	return code, nil
}

// compileInTime compiles a module here, where there is no cache to find it in. It gives
// up on one that takes too long, and within a function nothing stops that: it goes on
// until this process ends.
func (ms *modules) compileInTime(ctx context.Context, path, sum string) (wazero.CompiledModule, error) {
	if ms.most <= 0 {
		return ms.compileHere(ctx, path, sum)
	}
	ctx, cancel := context.WithTimeout(ctx, ms.most)
	defer cancel()
	type compiled struct {
		code wazero.CompiledModule
		err  error
	}
	done := make(chan compiled, 1)
	ms.busy.Go(func() {
		code, err := ms.compileHere(ctx, path, sum)
		done <- compiled{code, err}
	})
	select {
	case c := <-done:
		if c.err == nil || ctx.Err() == nil {
			return c.code, c.err
		}
	case <-ctx.Done():
	}
	return nil, errStuck
}

func (ms *modules) compileHere(ctx context.Context, path, sum string) (wazero.CompiledModule, error) {
	metered, err := instrument(ctx, path, sum)
	if err != nil {
		return nil, err
	}
	code, err := ms.runtime.CompileModule(ctx, metered)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "compile the module %s with its metering: %w", path, err).WithPath(path)
	}
	return code, nil
}

// instrument validates a module as it is and gives it its metering.
func instrument(ctx context.Context, path, sum string) ([]byte, error) {
	original, err := read(path, sum)
	if err != nil {
		return nil, err
	}
	if err := validate(ctx, path, original); err != nil {
		return nil, err
	}
	instrumented, err := meter.Instrument(original, meter.Options{MaxSize: MaxModule})
	if err != nil {
		return nil, refused(path, err)
	}
	return instrumented.Bytes, nil
}

// read reads a module's file, which must be what the caller knows.
func read(path, sum string) ([]byte, error) {
	f, info, err := diskfile.Open(path)
	switch {
	case errors.Is(err, diskfile.ErrNotRegular):
		return nil, tool.Errorf(tool.ConfigInvalid, "the module %s is not a regular file", path).WithPath(path)
	case err != nil:
		return nil, tool.Errorf(tool.ConfigInvalid, "the module cannot be read: %w", err).WithPath(path)
	}
	defer f.Close()
	if info.Size() > MaxModule {
		return nil, tool.Errorf(tool.ConfigInvalid, "the module %s has %d bytes, and at most %d can be run", path, info.Size(), MaxModule).WithPath(path)
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxModule+1))
	if err != nil {
		return nil, tool.Errorf(tool.ConfigInvalid, "the module cannot be read: %w", err).WithPath(path)
	}
	if got := sha256.Sum256(data); hex.EncodeToString(got[:]) != sum {
		return nil, tool.Errorf(tool.ConfigInvalid, "the module %s is not the one that was meant: its hash is %x", path, got).
			WithHint("if it was rebuilt, register it again").WithPath(path)
	}
	return data, nil
}

// validate checks the module as it came: what instruments it relies on that. An
// interpreter is enough for it, and nine times as fast as a compiler.
func validate(ctx context.Context, path string, original []byte) (err error) {
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	m, err := r.CompileModule(ctx, original)
	if err != nil {
		return tool.Errorf(tool.ConfigInvalid, "%s is no valid WebAssembly module: %w", path, err).
			WithHint("it must be a module of WebAssembly 2.0, not a component").WithPath(path)
	}
	if err := isCommand(path, m); err != nil {
		return err
	}
	return isKnown(ctx, r, path, m)
}

const hintCommand = "build it as a WASI preview 1 command, as with GOOS=wasip1 GOARCH=wasm or --target wasm32-wasip1"

// isCommand checks that a module is a command of WASI preview 1.
func isCommand(path string, m wazero.CompiledModule) error {
	start, ok := m.ExportedFunctions()[entry]
	if !ok || len(start.ParamTypes())+len(start.ResultTypes()) > 0 {
		return tool.Errorf(tool.ConfigInvalid, "the module %s exports no function %s, which a WASI command begins with", path, entry).
			WithHint(hintCommand).WithPath(path)
	}
	for _, f := range m.ImportedFunctions() {
		if from, name, _ := f.Import(); from != wasi_snapshot_preview1.ModuleName {
			return tool.Errorf(tool.Unsupported, "the module %s imports %q of %q, and guests get nothing but WASI preview 1", path, name, from).
				WithHint(hintCommand).WithPath(path)
		}
	}
	if len(m.ImportedMemories()) > 0 {
		return tool.Errorf(tool.Unsupported, "the module %s imports a memory, and guests bring their own", path).
			WithHint(hintCommand).WithPath(path)
	}
	if _, ok := m.ExportedMemories()["memory"]; !ok {
		return tool.Errorf(tool.ConfigInvalid, "the module %s exports no memory, through which WASI speaks with it", path).
			WithHint(hintCommand).WithPath(path)
	}
	return nil
}

// isKnown checks that what a command imports is there, as it wants to call it: the
// standard's drafts had other functions.
func isKnown(ctx context.Context, r wazero.Runtime, path string, m wazero.CompiledModule) error {
	if len(m.ImportedFunctions()) == 0 {
		return nil
	}
	if err := install(ctx, r); err != nil {
		return tool.Errorf(tool.Internal, "the functions of WASI: %w", err)
	}
	known := r.Module(wasi_snapshot_preview1.ModuleName).ExportedFunctionDefinitions()
	for _, f := range m.ImportedFunctions() {
		_, name, _ := f.Import()
		if is := known[name]; is == nil || !slices.Equal(is.ParamTypes(), f.ParamTypes()) || !slices.Equal(is.ResultTypes(), f.ResultTypes()) {
			return tool.Errorf(tool.Unsupported, "the module %s imports a function %q of WASI preview 1 that is not there, or not like that", path, name).
				WithHint(hintCommand).WithPath(path)
		}
	}
	return nil
}

// refused is why a module was given no metering.
func refused(path string, err error) error {
	kind := tool.ConfigInvalid
	if e, ok := errors.AsType[*meter.Error](err); ok && e.Unsupported {
		kind = tool.Unsupported
	}
	return tool.Errorf(kind, "the module %s cannot be metered: %w", path, err).
		WithHint("build it for WebAssembly 2.0, without threads, exceptions or garbage collection").WithPath(path)
}

// newRuntime makes the runtime in which all guests have their instances.
func newRuntime(ctx context.Context, c *cache) (wazero.Runtime, error) {
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithDebugInfoEnabled(false) // what was in the module's own debug sections is dropped with its metering
	if compiled := c.compiled(); compiled != nil {
		config = config.WithCompilationCache(compiled)
	}
	r := wazero.NewRuntimeWithConfig(ctx, config)
	if err := install(ctx, r); err != nil {
		return nil, errors.Join(fmt.Errorf("wasm: the host's functions: %w", err), r.Close(ctx))
	}
	return r, nil
}
