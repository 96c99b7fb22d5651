package wasm

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
)

// RunModule runs a module to its end; see [backends.ModuleRunner].
func (e *environment) RunModule(ctx context.Context, r backends.ModuleRequest) (backends.ModuleResult, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return backends.ModuleResult{}, err
	}
	defer done()
	mode, err := e.mode(r.Mode, tool.Actor{})
	if err != nil {
		return backends.ModuleResult{}, err
	}
	if !filepath.IsAbs(r.Path) {
		return backends.ModuleResult{}, tool.Errorf(tool.InvalidParams, "the module's path %q is not absolute", r.Path).WithPath("path")
	}
	if err := checkTexts(r.Args, nil); err != nil {
		return backends.ModuleResult{}, err
	}
	run := e.limits(r.Timeout, r.MaxOutputBytes, 0)
	run.Path, run.SHA256 = r.Path, strings.ToLower(r.SHA256)
	run.Args = append([]string{programName(r.Path)}, r.Args...)
	run.ReadOnly = mode == tool.ReadOnly
	run.Environment = workingIn(e.Info().Root)
	out, stdout, stderr, err := e.run(ctx, run, r.Stdin)
	if err != nil {
		return backends.ModuleResult{}, err
	}
	if out.Ending != engine.Exited {
		return backends.ModuleResult{}, stopped(run, out, stderr)
	}
	return backends.ModuleResult{
		Stdout: stdout, Stderr: stderr, ExitCode: int(out.ExitCode),
		FuelRemaining: out.FuelRemaining, Duration: time.Duration(out.Duration),
	}, nil
}

// checkTexts refuses arguments and variables that no guest can be given.
func checkTexts(args []string, environment map[string]string) error {
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return tool.Errorf(tool.InvalidParams, "%q holds a NUL byte, which no argument can", arg).WithPath("argv")
		}
	}
	for name, value := range environment {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return tool.Errorf(tool.InvalidParams, "%q cannot be the name of a variable", name).WithPath("environment")
		}
		if strings.ContainsRune(value, 0) {
			return tool.Errorf(tool.InvalidParams, "the value of %q holds a NUL byte", name).WithPath("environment")
		}
	}
	return nil
}

// programName is the name by which a module is called.
func programName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".wasm") }

// workingIn is how a guest learns of its working directory, which WASI has not.
func workingIn(dir string) map[string]string { return map[string]string{"PWD": dir} }

// limits are those of the profile, where a request does not ask for less: a time,
// bytes of output, and bytes of memory.
func (e *environment) limits(timeout time.Duration, output, memory int64) engine.Run {
	p := e.binding.Profile
	run := engine.Run{
		Fuel: p.MaxFuel, MemoryPages: p.MaxMemoryPages, Timeout: int64(p.MaxExecutionTime),
		MaxOutput: p.MaxOutputBytes, Deterministic: p.Deterministic,
	}
	for _, limit := range []time.Duration{timeout, p.Timeout} {
		if limit > 0 && (run.Timeout <= 0 || int64(limit) < run.Timeout) {
			run.Timeout = int64(limit)
		}
	}
	if output > 0 {
		run.MaxOutput = min(output, run.MaxOutput)
	}
	if memory > 0 {
		run.MemoryPages = uint32(min(max(1, memory/engine.PageSize), int64(run.MemoryPages)))
	}
	return run
}

// run has the engine run a module.
func (e *environment) run(ctx context.Context, run engine.Run, stdin []byte) (out engine.Outcome, stdout, stderr []byte, err error) {
	for _, p := range e.places {
		if err := p.root.Check(); err != nil {
			return out, nil, nil, err
		}
	}
	if run.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(run.Timeout)+waitTime)
		defer cancel()
	}
	reply, by, err := e.engine.call(ctx, engine.MethodRun, run, stdin)
	if err != nil {
		return out, nil, nil, err
	}
	if err := reply.Decode(&out); err != nil {
		return out, nil, nil, err
	}
	if out.Ending == engine.Uncompiled {
		if out.Replace {
			e.engine.retire(by)
		}
		return out, nil, nil, tool.Errorf(tool.ConfigInvalid, "the module %s was not compiled within %v, and did not run", run.Path, time.Duration(e.engine.setup.MaxCompile)).
			WithHint("divide its functions: those with very many locals, loops and branches take the compiler that long").WithPath(run.Path)
	}
	if out.Stdout < 0 || out.Stderr < 0 || out.Stdout+out.Stderr != len(reply.Body) {
		return out, nil, nil, tool.Errorf(tool.ProtocolMismatch, "the WebAssembly engine's answer holds %d bytes of output and announces others", len(reply.Body))
	}
	return out, reply.Body[:out.Stdout:out.Stdout], reply.Body[out.Stdout:], nil
}

// stopped is the error of a guest that did not end by itself.
func stopped(run engine.Run, out engine.Outcome, stderr []byte) error {
	name := run.Args[0]
	e := &tool.Error{Kind: tool.GuestFailed, FuelRemaining: &out.FuelRemaining}
	switch out.Ending {
	case engine.OutOfTime:
		e.Kind = tool.Timeout
		e.Message = fmt.Sprintf("the module %s was stopped after %v", name, time.Duration(run.Timeout))
		e.Hint = "give it less to do, or raise max_execution_time in the profile"
	case engine.OutOfFuel:
		e.Reason = tool.OutOfFuel
		e.Message = fmt.Sprintf("the module %s was stopped because its fuel, %d instructions, was spent", name, run.Fuel)
		e.Hint = "give it less to do, or raise max_fuel in the profile"
	case engine.OutOfMemory:
		e.Reason = tool.OutOfMemory
		e.Message = fmt.Sprintf("the module %s needed more memory than its %d pages of 64 KiB", name, run.MemoryPages)
		e.Hint = "give it less to do, or raise max_memory_pages in the profile"
	case engine.StackOverflow:
		e.Reason = tool.StackOverflow
		e.Message = fmt.Sprintf("the module %s called functions too deeply", name)
		e.Hint = "it most likely calls itself without an end"
	case engine.OutOfOutput:
		e.Reason = tool.OutputLimit
		e.Message = fmt.Sprintf("the module %s wrote more than %d bytes", name, run.MaxOutput)
		e.Hint = "have it write to a file, or raise execution.max_output_bytes"
	default:
		e.Reason = tool.Trap
		first, _, _ := strings.Cut(out.Detail, "\n")
		e.Message = fmt.Sprintf("the module %s failed: %s", name, first)
		e.Hint = "it is a fault of the module"
	}
	if words := lastWords(stderr); words != "" {
		e.Message += "; it said: " + words
	}
	return e
}

// rustNote is the advice that Rust's run-time system gives after what has happened.
const rustNote = "\nnote: run with `RUST_BACKTRACE=1`"

// lastWords are the last line that a guest wrote to standard error.
func lastWords(stderr []byte) string {
	text := strings.ToValidUTF8(string(stderr), "\ufffd")
	if i := strings.LastIndex(text, rustNote); i >= 0 {
		text = text[:i]
	}
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		text = text[i+1:]
	}
	return tool.Clip(text, maxLastWords)
}
