package tool

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Limits of a job's request.
const (
	// MaxJobInputs is how many files a job may be given.
	MaxJobInputs = 1000
	// MaxJobBytes bounds the script, standard input and all input files together,
	// in bytes: what the editor's protocol and a body of the wire hold.
	MaxJobBytes = 64 << 20
	// MaxJobGlobs is how many globs may say what comes back.
	MaxJobGlobs = 100
	// maxJobPath is the longest path of an input, in bytes: Linux takes no longer
	// one.
	maxJobPath = 4096
)

// JobRequest asks for one job. Either Argv or Script stands.
type JobRequest struct {
	// ID names the job in events and errors; unique within a session.
	ID     string
	Argv   []string
	Script *JobScript
	// Inputs are put into the job's directory, or below CWD, before it begins.
	Inputs []JobInput
	// CWD is a directory of the workspace to run in, where nothing is removed
	// afterwards; empty means a fresh directory that is gone when the job is over.
	CWD string
	// Stdin is all that the program reads from its standard input.
	Stdin []byte
	// Environment are variables beside those of the environment itself.
	Environment map[string]string
	// Actor and Mode are as in [Request].
	Actor Actor
	Mode  Mode
	// Timeout bounds the job by the wall clock, CPUTime each of its processes by
	// the processor; 0 means no limit beside the environment's.
	Timeout time.Duration
	CPUTime time.Duration
	// Memory bounds each process of the job, in bytes; 0 means no limit beside the
	// environment's.
	Memory int64
	// MaxOutputBytes bounds standard output and standard error together; 0 means
	// the environment's limit.
	MaxOutputBytes int64
	// Collect are globs of the files that come back; empty means all that the job
	// left in its own directory, and none with CWD. Inputs and the script are left
	// out, changed or not.
	Collect []string
}

// JobScript is a program text and the interpreter that gets its file's name.
type JobScript struct {
	Interpreter string
	Source      string
}

// JobInput is one file for a job.
type JobInput struct {
	// Path is relative, has slashes, and stays inside.
	Path string
	Data []byte
}

// JobResult is what a job came to.
type JobResult struct {
	Stdout, Stderr []byte
	// ExitCode is -1 where a signal ended the program; Signal names it then.
	ExitCode int
	Signal   string
	// TimedOut says that the job was killed at its time limit, Truncated that
	// more was written than is returned.
	TimedOut  bool
	Truncated bool
	// Files are immutable snapshots of what was collected, each to be fetched by
	// the Export of the environment and its token. Whoever gets them fetches or
	// closes every one.
	Files []JobFile
	// FilesDropped counts files that were not collected, because there were more,
	// or larger ones, than a job may leave, or no room for them. Stderr says so of
	// the last.
	FilesDropped int
	// FuelRemaining is what was left of a WebAssembly guest's fuel; nil elsewhere.
	FuelRemaining *uint64
}

// NotCollected is what a job wrote to standard error, with why n files are not there:
// what the job came to is known all the same, and must not pass for all that it left.
func NotCollected(stderr []byte, n int, why error) []byte {
	if len(stderr) > 0 && stderr[len(stderr)-1] != '\n' {
		stderr = append(stderr, '\n')
	}
	return fmt.Appendf(stderr, "caisson: files that the job left and that were not collected for this reason: %d; %v\n", n, why)
}

// JobFile is a file that a job left.
type JobFile struct {
	Path  string
	Size  int64
	Token string
}

// Check refuses what no job can be, as [InvalidParams] with the path of the
// member, by its name in the editor's protocol. It puts the inputs' paths in
// their shortest form.
func (r *JobRequest) Check() error {
	invalid := func(member, format string, args ...any) *Error {
		return Errorf(InvalidParams, format, args...).WithPath(member)
	}
	switch {
	case (len(r.Argv) == 0) == (r.Script == nil):
		return invalid("argv", "a job needs either an argument list or a script")
	case r.Script == nil && r.Argv[0] == "":
		return invalid("argv", "the argument list begins with an empty name of a program")
	case r.Script != nil && r.Script.Interpreter == "":
		return invalid("script.interpreter", "a script needs the program that runs it").
			WithHint(`name one that the environment has, such as "python3" or "sh"`)
	case r.Timeout < 0 || r.CPUTime < 0 || r.Memory < 0 || r.MaxOutputBytes < 0:
		return invalid("constraints", "a limit of a job cannot be negative")
	case len(r.Inputs) > MaxJobInputs:
		return invalid("inputFiles", "%d input files are more than the %d that a job takes", len(r.Inputs), MaxJobInputs)
	case len(r.Collect) > MaxJobGlobs:
		return invalid("collect", "%d globs are more than the %d that a job takes", len(r.Collect), MaxJobGlobs)
	}
	for _, glob := range r.Collect {
		if matchesNothing(glob) {
			return invalid("collect", "the glob %q matches no file of the job's directory", glob).
				WithHint(`give one relative to that directory, without "." and "..", such as "*.csv"; what is in a directory is "out/**"`)
		}
	}
	if n := r.size(); n > MaxJobBytes {
		return invalid("inputFiles", "the script, the standard input and the input files have %d bytes together, more than the %d that a job takes", n, int64(MaxJobBytes))
	}
	return r.checkInputs()
}

// matchesNothing reports whether a glob has a part that no file below a directory
// has in its path: an empty one, so that it is absolute or ends in a slash, "." but for
// the first, or "..", which may be an alternative too.
func matchesNothing(glob string) bool {
	parts := strings.Split(strings.TrimPrefix(glob, "./"), "/")
	up := slices.Contains(strings.FieldsFunc(glob, func(c rune) bool { return strings.ContainsRune("/{,}", c) }), "..")
	return up || slices.Contains(parts, "") || slices.Contains(parts, ".")
}

// size is how many bytes the job brings along.
func (r *JobRequest) size() int64 {
	n := int64(len(r.Stdin))
	if r.Script != nil {
		n += int64(len(r.Script.Source))
	}
	for _, in := range r.Inputs {
		n += int64(len(in.Data))
	}
	return n
}

// checkInputs checks the paths, each by itself and beside the others.
func (r *JobRequest) checkInputs() error {
	files := make(map[string]bool, len(r.Inputs))
	for i := range r.Inputs {
		in := &r.Inputs[i]
		bad := func(why string) error {
			return Errorf(InvalidParams, "the input file %q %s", in.Path, why).WithPath("inputFiles." + in.Path).
				WithHint("give a path relative to the job's directory, with slashes, that stays inside")
		}
		name := path.Clean(in.Path)
		switch {
		case in.Path == "" || name == "." || strings.HasSuffix(in.Path, "/"):
			return bad("has a path that names no file")
		case len(in.Path) > maxJobPath:
			return bad("has a path that is too long")
		case strings.ContainsRune(in.Path, 0):
			return bad("has a NUL byte in its path")
		case strings.HasPrefix(name, "/"):
			return bad("has an absolute path")
		case name == ".." || strings.HasPrefix(name, "../"):
			return bad("has a path that leads out of the job's directory")
		case files[name]:
			return bad("is given twice")
		}
		in.Path, files[name] = name, true
	}
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return Errorf(InvalidParams, "the input file %q would lie below %q, which is a file too", name, dir).WithPath("inputFiles." + name)
			}
		}
	}
	return nil
}
