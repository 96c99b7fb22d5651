package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
	"github.com/caisson-dev/caisson/backends/worker/job"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// jobDir is where a job's own directory is for its guest.
const jobDir = "/job"

// RunJob runs a job whose program, or interpreter, is one of the profile's modules.
// A guest that is stopped for its fuel, its memory, its stack or a trap is a result
// whose signal is the reason's name, so that what it wrote comes back.
func (e *environment) RunJob(ctx context.Context, r backends.JobRequest) (backends.JobResult, error) {
	ctx, done, err := e.begin(ctx)
	if err != nil {
		return backends.JobResult{}, err
	}
	defer done()
	if err := r.Check(); err != nil {
		return backends.JobResult{}, err
	}
	if r.CPUTime > 0 {
		return backends.JobResult{}, tool.Errorf(tool.Unsupported, "a wasm job is not limited in processor time").
			WithHint("its fuel, max_fuel of the profile, is that limit; leave the constraint out").WithPath("constraints.cpuTime")
	}
	if r.Mode, err = e.mode(r.Mode, r.Actor); err != nil {
		return backends.JobResult{}, err
	}
	if r.CWD != "" {
		if err := e.checkCWD(r); err != nil {
			return backends.JobResult{}, err
		}
	}
	runner, err := e.runner()
	if err != nil {
		return backends.JobResult{}, err
	}
	var fuel uint64
	result, err := runner.Run(context.WithValue(ctx, fuelKey{}, &fuel), r)
	if err != nil {
		return backends.JobResult{}, err
	}
	result.FuelRemaining = &fuel
	return result, nil
}

// fuelKey is where a job finds the place for the fuel that was left.
type fuelKey struct{}

// runner is what runs jobs, made at the first one.
func (e *environment) runner() (*job.Runner, error) {
	e.jobsMu.Lock()
	defer e.jobsMu.Unlock()
	if e.jobs != nil {
		return e.jobs, nil
	}
	var root *workspace.Root
	if len(e.places) > 0 {
		root = e.places[0].root
	} else {
		dir := emptyDir(e.binding)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, tool.Errorf(tool.Internal, "make a directory for jobs: %w", err).WithPath(dir).WithDisk(dir)
		}
		var err error
		if root, err = workspace.Open(dir); err != nil {
			return nil, tool.Errorf(tool.Internal, "open the directory of jobs: %w", err).WithPath(dir)
		}
		e.jobsRoot = root
	}
	e.jobs = job.New(job.Options{
		Root: root, Commands: guests{e}, Exports: e.exports, Dir: jobsDir(e.binding), Log: e.backend.o.Log,
	})
	return e.jobs, nil
}

// closeJobs lets go of what runner made, after the last job.
func (e *environment) closeJobs() error {
	e.jobsMu.Lock()
	defer e.jobsMu.Unlock()
	if e.jobsRoot == nil {
		return nil
	}
	return e.jobsRoot.Close()
}

// checkCWD refuses a directory that no job of the profile can work in.
func (e *environment) checkCWD(r backends.JobRequest) error {
	p, err := e.at(r.CWD)
	switch {
	case err != nil:
		return err
	case p != e.places[0]:
		return tool.Errorf(tool.Unsupported, "a job works in the first directory of the profile, %s, and %q is in another", e.places[0].Guest, r.CWD).
			WithHint("let the job write there by its whole path").WithPath("cwd")
	case p.ReadOnly && len(r.Inputs) > 0:
		return p.errReadOnly("cwd")
	}
	return nil
}

// guests runs jobs as guests of the engine.
type guests struct{ e *environment }

var _ job.Commands = guests{}

// Run runs the module that the command's first argument names.
func (g guests) Run(ctx context.Context, c process.Command) (process.Result, error) {
	if len(c.Argv) == 0 {
		return process.Result{}, errNoCommands("a command line")
	}
	if ctx.Err() != nil {
		return process.Result{}, tool.Errorf(tool.EndKind(ctx), "the job was cancelled: %w", context.Cause(ctx))
	}
	if err := checkTexts(c.Argv, c.Env); err != nil {
		return process.Result{}, err
	}
	module, err := g.e.module(c.Argv[0])
	if err != nil {
		return process.Result{}, err
	}
	run := g.e.limits(c.Timeout, c.MaxOutputBytes, c.Limits.Memory)
	run.Truncate = true
	run.Path = module
	if run.SHA256, err = g.e.hashes.of(module); err != nil {
		return process.Result{}, err
	}
	run.ReadOnly = c.Mode == tool.ReadOnly
	work, err := g.mount(&run, c)
	if err != nil {
		return process.Result{}, err
	}
	run.Args = []string{programName(module)}
	for _, arg := range c.Argv[1:] {
		run.Args = append(run.Args, guestPath(c.Place, arg))
	}
	run.Environment = workingIn(work)
	for name, value := range c.Env {
		run.Environment[name] = value
	}
	out, stdout, stderr, err := g.e.run(ctx, run, c.Stdin)
	if err != nil {
		return process.Result{}, err
	}
	if fuel, ok := ctx.Value(fuelKey{}).(*uint64); ok {
		*fuel = out.FuelRemaining
	}
	result := process.Result{
		Stdout: stdout, Stderr: stderr, ExitCode: int(out.ExitCode), Duration: time.Duration(out.Duration), Mode: c.Mode,
		StdoutBytes: int64(len(stdout)), StderrBytes: int64(len(stderr)), StdoutTruncated: out.Truncated,
	}
	switch out.Ending {
	case engine.Exited:
	case engine.OutOfTime:
		result.ExitCode, result.TimedOut = -1, true
	default:
		var why *tool.Error
		if errors.As(stopped(run, out, nil), &why) {
			result.ExitCode, result.Signal = -1, string(why.Reason)
			result.Stderr = fmt.Appendf(result.Stderr, "caisson: %s\n", why.Message)
		}
	}
	return result, nil
}

// mount gives a job's guest its directories, and returns its working directory. A
// guest without a notion of one works in "/", which is therefore the same.
func (g guests) mount(run *engine.Run, c process.Command) (work string, err error) {
	if c.CWD == "" {
		work = jobDir
		run.Mounts = []engine.Mount{{Host: c.Place.Work, Guest: jobDir}}
		if !g.e.hasRoot() {
			run.Mounts = append(run.Mounts, engine.Mount{Host: c.Place.Work, Guest: "/"})
		}
		return work, nil
	}
	first := g.e.places[0]
	name, err := first.root.Name(c.CWD)
	if err != nil {
		return "", err
	}
	run.Mounts = []engine.Mount{{Host: c.Place.Dir, Guest: jobDir}}
	if !g.e.hasRoot() {
		run.Mounts = append(run.Mounts, engine.Mount{
			Host: first.root.Dir(), Below: name, Guest: "/", File: first.file, ReadOnly: first.ReadOnly || run.ReadOnly,
		})
	}
	return path.Join(first.Guest, name), nil
}

// hasRoot reports whether the profile says what guests see at "/".
func (e *environment) hasRoot() bool {
	return slices.ContainsFunc(e.places, func(p *place) bool { return p.Guest == "/" })
}

// guestPath is arg as the guest knows it, where it is a path of the job's own
// directory on this machine.
func guestPath(p *process.Place, arg string) string {
	for _, dir := range []string{p.Work, p.Dir} {
		if rel, ok := strings.CutPrefix(arg, dir+string(filepath.Separator)); ok {
			return path.Join(jobDir, filepath.ToSlash(rel))
		}
	}
	return arg
}

// module finds the file of a module that a job names: by its path as the profile
// has it, or by its name without the extension.
func (e *environment) module(name string) (string, error) {
	var known []string
	for _, m := range e.binding.Profile.Modules {
		if isDigest(m) {
			continue // a registered tool, whose file is not the profile's
		}
		if m == name || programName(m) == name || filepath.Base(m) == name {
			return m, nil
		}
		known = append(known, programName(m))
	}
	err := tool.Errorf(tool.Unsupported, "there is no module %q in this profile, and a wasm environment runs nothing else", name)
	if len(known) == 0 {
		return "", err.WithHint(`name the module's file in "modules" of the profile`)
	}
	return "", err.WithHint("the profile's modules are %s", strings.Join(known, ", "))
}

// isDigest reports whether a module is named by its content.
func isDigest(m string) bool {
	_, is := profile.CutDigest(m)
	return is
}
