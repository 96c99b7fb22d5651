// Package job runs a program to its end in a directory of its own and collects
// what it leaves. Nothing of a job lives on: what it has started is killed when
// it ends, and its directory is removed, by the next worker where this one died.
package job

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/rlimit"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// Commands runs what jobs are; [process.Manager] does.
type Commands interface {
	Run(ctx context.Context, c process.Command) (process.Result, error)
}

// Options says where jobs run.
type Options struct {
	Root     *workspace.Root
	Commands Commands
	// Exports takes what jobs leave.
	Exports *tools.Exports
	// Dir is where jobs have their directories: absolute, and no command's to
	// write. Where nothing in it may be executed they lie in the workspace.
	Dir string
	// NoExec reports whether nothing in a directory can be executed; nil asks the
	// system.
	NoExec func(dir string) bool
	// Log takes what has no caller to return to; nil discards it.
	Log *slog.Logger
}

// Runner runs the jobs of one session. Its methods may be called concurrently.
type Runner struct{ o Options }

// New makes a Runner, and removes what the jobs of workers that have died left.
func New(o Options) *Runner {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.NoExec == nil {
		o.NoExec = noexec
	}
	r := &Runner{o: o}
	for _, dir := range []string{o.Dir, r.inWorkspace()} {
		if err := Prune(dir, 0, false, func(string, time.Time) {}); err != nil {
			o.Log.Warn("what an earlier job left was not removed", "directory", dir, "error", err)
		}
	}
	return r
}

// Run runs one job. The request must have been checked ([tool.JobRequest.Check]);
// its mode is what it gets, within the ceiling of the commands. A program that
// fails, is killed or takes longer than its time is a result. An error says that
// it did not run, that ctx ended, or that something of it could not be ended.
// Nothing is left in every case.
func (r *Runner) Run(ctx context.Context, q tool.JobRequest) (result tool.JobResult, err error) {
	for _, glob := range q.Collect {
		if !doublestar.ValidatePattern(glob) || glob == "" {
			return result, tool.Errorf(tool.InvalidParams, "the glob %q is not valid", glob).WithPath("collect")
		}
	}
	if err := r.o.Root.Check(); err != nil {
		return result, err
	}
	p, err := r.newPlace()
	if err != nil {
		return result, err
	}
	defer func() {
		if err := p.remove(); err != nil {
			// The next worker tries again; what the job came to is known all the same.
			r.o.Log.Warn("the directory of a job was not removed", "job", q.ID, "error", err)
		}
	}()
	var in inputs
	if q.CWD == "" {
		in, err = p.own()
	} else {
		in, err = r.inCWD(q)
	}
	if err != nil {
		return result, err
	}
	defer in.close()
	command, script, err := r.prepare(q, p, in)
	if err != nil {
		return result, err
	}
	ended, err := r.o.Commands.Run(ctx, command)
	result = tool.JobResult{
		Stdout: ended.Stdout, Stderr: ended.Stderr, ExitCode: ended.ExitCode, Signal: ended.Signal,
		TimedOut: ended.TimedOut, Truncated: ended.StdoutTruncated || ended.StderrTruncated,
	}
	if err != nil || q.CWD != "" && len(q.Collect) == 0 {
		return result, err
	}
	c := collector{exports: r.o.Exports, root: in.directory(), globs: q.Collect, aside: aside(q, script), leaves: in.leaves, room: maxEntries}
	if result.Files, result.FilesDropped, err = c.collect(ctx); err != nil {
		return tool.JobResult{}, err
	}
	if c.noRoom != nil {
		result.Stderr = tool.NotCollected(result.Stderr, c.unkept, c.noRoom)
	}
	return result, nil
}

// prepare writes the inputs and the script, and makes the command. It returns
// the name that the script has among the inputs, "" where it lies elsewhere.
func (r *Runner) prepare(q tool.JobRequest, p *place, in inputs) (c process.Command, script string, err error) {
	cwd, err := workspace.Parse(q.CWD)
	if err != nil {
		return c, "", err
	}
	c = process.Command{
		Argv: q.Argv, CWD: cwd, Env: variables(q), Stdin: q.Stdin, Actor: q.Actor, Mode: q.Mode,
		Timeout: q.Timeout, MaxOutputBytes: q.MaxOutputBytes, Place: &p.Place, Alone: true,
		Limits: rlimit.Limits{CPUTime: q.CPUTime, Memory: q.Memory},
	}
	for _, f := range q.Inputs {
		if err := process.WritePrograms(func() error { return in.write(f.Path, f.Data) }); err != nil {
			return c, "", unwritten(f.Path, err, in.disk())
		}
	}
	if q.Script == nil {
		return c, "", nil
	}
	script, dir := scriptName(q), p.Work
	if q.CWD != "" {
		dir = p.Dir // the workspace keeps nothing of it
	}
	write := func() error { return p.write(dir, script, []byte(q.Script.Source)) }
	if err := process.WritePrograms(write); err != nil {
		return c, "", unwritten("script", err, p.disk())
	}
	c.Argv = []string{q.Script.Interpreter, filepath.Join(dir, script)}
	return c, script, nil
}

// cause is an error without the path that the system says beside it, which nobody has
// quoted.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}

// unwritten is the error of an input that could not be put into its place, which is
// on the disk of a directory that stays.
func unwritten(name string, err error, disk string) error {
	var known *tool.Error
	if errors.As(err, &known) {
		return err
	}
	kind := tool.InvalidParams // of a name that is too long, or a directory's
	if tool.IsDiskFull(err) || errors.Is(err, fs.ErrPermission) {
		kind = tool.Internal
	}
	return tool.Errorf(kind, "put the input %q into its place: %w", workspace.Format(name), cause(err)).WithPath("inputFiles." + name).WithDisk(disk)
}

// variables are those of the job. Python's cache of compiled modules would come
// back as a file that the job left, and help nobody: its directory goes.
func variables(q tool.JobRequest) map[string]string {
	if q.CWD != "" {
		return q.Environment
	}
	env := map[string]string{"PYTHONDONTWRITEBYTECODE": "1"}
	for name, value := range q.Environment {
		env[name] = value
	}
	return env
}

// extensions are those of scripts whose interpreters look at them, by the name of
// the interpreter, and of a few others for whoever reads a message.
var extensions = map[string]string{
	"python": ".py", "python3": ".py", "node": ".js", "deno": ".ts", "bun": ".ts", "ruby": ".rb", "perl": ".pl",
	"sh": ".sh", "bash": ".sh", "dash": ".sh", "zsh": ".zsh", "pwsh": ".ps1", "php": ".php", "lua": ".lua", "Rscript": ".R",
}

// scriptName is a name that no input of q has.
func scriptName(q tool.JobRequest) string {
	name := "script" + extensions[path.Base(q.Script.Interpreter)]
	for taken := true; taken; {
		taken = false
		for _, in := range q.Inputs {
			if in.Path == name || len(in.Path) > len(name) && in.Path[:len(name)+1] == name+"/" {
				name, taken = "job-"+name, true
			}
		}
	}
	return name
}

// aside are the names of what does not come back.
func aside(q tool.JobRequest, script string) map[string]bool {
	names := map[string]bool{}
	for _, in := range q.Inputs {
		names[in.Path] = true
	}
	if script != "" && q.CWD == "" {
		names[script] = true
	}
	return names
}

// inWorkspace is where jobs have their directories that cannot be in Dir.
func (r *Runner) inWorkspace() string { return InWorkspace(r.o.Root.Dir()) }
