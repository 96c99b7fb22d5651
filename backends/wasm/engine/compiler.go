package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/self"
)

// compileArg, after [Command], makes the process a compiler of one module: it takes a
// compilation from its standard input, puts what it made into the cache, and prints a
// compiled. It ends with its input.
const compileArg = "compile"

// compilation is what a compiler is asked for.
type compilation struct {
	Path     string `json:"path"`
	SHA256   string `json:"sha256"`
	CacheDir string `json:"cache_dir"`
}

// compiled is a compiler's answer: whether the module is in the cache, or why not.
type compiled struct {
	Done    bool      `json:"done,omitempty"`
	Kind    tool.Kind `json:"kind,omitempty"`
	Message string    `json:"message,omitempty"`
	Hint    string    `json:"hint,omitempty"`
	Path    string    `json:"path,omitempty"`
}

// errTooLong is a module that is not compiled in time.
var errTooLong = errors.New("compiling it takes too long")

// errStuck is one that this process goes on compiling nevertheless.
var errStuck = fmt.Errorf("%w and cannot be ended", errTooLong)

// compilers start a process for each module that is to be compiled: a few dozen bytes
// can keep a compiler busy for days, or take all memory that there is, and nobody should
// notice but who brought them.
type compilers struct {
	// life ends with the engine.
	life context.Context
	// quick and slow hold an element for each compiler that runs. One that is not soon
	// done must go to the slow, so that others are not kept waiting.
	quick, slow chan struct{}
	// soon is how long one may be among the quick, and most how long one may take;
	// 0 is no limit.
	soon, most time.Duration
}

func newCompilers(life context.Context, most time.Duration) *compilers {
	return &compilers{
		life:  life,
		quick: make(chan struct{}, maxCompiling), slow: make(chan struct{}, maxSlow),
		soon: soon, most: most,
	}
}

// compile puts a module into the cache, unless its time is over before.
func (cs *compilers) compile(c compilation) error {
	if !cs.enter(cs.quick) {
		return cs.life.Err()
	}
	p, err := startCompiler(cs.life, c)
	if err != nil {
		<-cs.quick
		return err
	}
	began := time.Now()
	if p.endsWithin(cs.soon) {
		<-cs.quick
		return p.result(c)
	}
	select {
	case cs.slow <- struct{}{}:
		<-cs.quick
	default: // it begins once more when there is room: the quick have waited enough
		p.kill()
		<-cs.quick
		if !cs.enter(cs.slow) {
			return cs.life.Err()
		}
		if p, err = startCompiler(cs.life, c); err != nil {
			<-cs.slow
			return err
		}
		began = time.Now()
	}
	defer func() { <-cs.slow }()
	lowerPriority(p.cmd.Process.Pid, niceSlow)
	left := time.Duration(math.MaxInt64)
	if cs.most > 0 {
		left = cs.most - time.Since(began)
	}
	if !p.endsWithin(left) {
		p.kill()
		return errTooLong
	}
	return p.result(c)
}

// enter waits for room among the compilers, unless the engine ends before.
func (cs *compilers) enter(lane chan struct{}) bool {
	select {
	case lane <- struct{}{}:
		return true
	case <-cs.life.Done():
		return false
	}
}

// compiler is a process that compiles.
type compiler struct {
	cmd   *exec.Cmd
	input io.Closer // it ends with it
	said  Said
	reply Said
	ended chan struct{} // closed when err is set
	err   error
}

func startCompiler(life context.Context, c compilation) (*compiler, error) {
	executable, err := self.Path()
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the compiler of WebAssembly cannot be started: %w", err)
	}
	p := &compiler{ended: make(chan struct{}), said: Said{Max: maxSaid}, reply: Said{Max: maxSaid}}
	p.cmd = exec.CommandContext(life, executable, Command, compileArg)
	p.cmd.Args[0] = self.Name(executable)
	p.cmd.Stdout, p.cmd.Stderr = &p.reply, &p.said
	input, err := p.cmd.StdinPipe()
	p.input = input
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, tool.Errorf(tool.BackendUnavailable, "the compiler of WebAssembly cannot be started: %w", err).
			WithHint("if the program was replaced or moved, restart the service")
	}
	// What cannot be written is for one that has ended. The input stays open.
	_ = json.NewEncoder(input).Encode(c)
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// endsWithin waits for its end.
func (p *compiler) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.ended:
		return true
	case <-timer.C:
		return false
	}
}

func (p *compiler) kill() {
	_ = p.cmd.Process.Kill() // one that has ended
	<-p.ended
}

// result is what became of the module.
func (p *compiler) result(c compilation) error {
	var r compiled
	if err := json.Unmarshal([]byte(p.reply.String()), &r); err == nil && p.err == nil {
		if r.Done {
			return nil
		}
		return &tool.Error{Kind: r.Kind, Message: r.Message, Hint: r.Hint, Path: r.Path}
	}
	text := p.said.String()
	first, _, _ := strings.Cut(text, "\n")
	if strings.Contains(text, "out of memory") || strings.Contains(text, "cannot allocate memory") || killed(p.cmd.ProcessState) {
		return tool.Errorf(tool.ConfigInvalid, "compiling the module %s takes more memory than there is, or than the %d MiB that it may take", c.Path, dataCompiler>>20).
			WithHint("divide its functions, or have fewer locals in them").WithPath(c.Path)
	}
	return tool.Errorf(tool.Internal, "the compiler of the module %s ended without an answer (%v): %s", c.Path, p.cmd.ProcessState, first).WithPath(c.Path)
}

// compileOne is the process that compiles.
func compileOne(in io.Reader, out io.Writer) error {
	debug.SetMemoryLimit(heapLimit)
	if err := confine(dataCompiler); err != nil {
		return err
	}
	d := json.NewDecoder(in)
	var c compilation
	if err := d.Decode(&c); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1) // nobody waits for it
	}()
	var r compiled
	if err := c.compile(context.Background()); err != nil {
		r = compiled{Kind: tool.KindOf(err), Message: brief(err.Error())} // it may quote names of the module's, of any length
		if e, ok := errors.AsType[*tool.Error](err); ok {
			r.Hint, r.Path = e.Hint, e.Path
		}
	} else {
		r.Done = true
	}
	return json.NewEncoder(out).Encode(r)
}

// compile puts the module's machine code into the cache, and then the metered module,
// which says that the other is there.
func (c compilation) compile(ctx context.Context) (err error) {
	kept, err := openCache(c.CacheDir)
	if err != nil {
		return tool.Errorf(tool.Internal, "open the cache of compiled modules: %w", err).WithPath(c.CacheDir)
	}
	metered, err := instrument(ctx, c.Path, c.SHA256)
	if err != nil {
		return err
	}
	r, err := newRuntime(ctx, kept)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close(ctx)) }()
	_, err = r.CompileModule(ctx, metered)
	if _, file := errors.AsType[*fs.PathError](err); err != nil && (!file || errors.Is(err, fs.ErrPermission)) {
		kept.empty() // machine code may be there, and be damaged, or closed to its own user
		_, err = r.CompileModule(ctx, metered)
	}
	if err != nil {
		return tool.Errorf(tool.Internal, "compile the module %s with its metering: %w", c.Path, err).WithPath(c.Path).WithDisk(c.CacheDir)
	}
	if err := kept.store(c.SHA256, metered); err != nil {
		return tool.Errorf(tool.Internal, "keep the compiled module %s: %w", c.Path, err).WithPath(c.CacheDir).WithDisk(c.CacheDir)
	}
	return nil
}
