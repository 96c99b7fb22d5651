package tools

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// Options says what a [Set] works on.
type Options struct {
	// Root is the workspace. Required; the set does not close it.
	Root *workspace.Root
	// Exports takes what present_artifact is given. Nil: there is no such tool.
	// The set does not close it.
	Exports *Exports
	// Commands runs bash, git and background processes. Nil: there are no such
	// tools.
	Commands Commands
	// Foreground says that no command outlives its call: there is no tool process,
	// and a command that takes too long is killed.
	Foreground bool
	// DefaultMode is the permission mode of a call that names none; empty
	// means [tool.Standard].
	DefaultMode tool.Mode
	// Ceiling is the widest mode that a call may have; empty means
	// [tool.Standard].
	Ceiling tool.Mode
	// MaxOutputBytes bounds stdout and stderr of one command together, and the
	// text of every page; 0 means [DefaultOutputBytes] and the pages' own limits.
	MaxOutputBytes int64
}

// Set is the tools of one workspace. Its methods may be called concurrently.
type Set struct {
	o     Options
	tools map[string]handler
	// writing keeps two changes of one file apart.
	writing [writeLocks]sync.Mutex
}

// call is one call of a tool on its way through a handler.
type call struct {
	tool.Request
	mode    tool.Mode // the mode that holds
	ceiling tool.Mode // the widest that may be asked for
}

type handler func(ctx context.Context, c *call) (tool.Result, error)

// New makes the tools. It touches no file.
func New(o Options) *Set {
	o.DefaultMode = cmp.Or(o.DefaultMode, tool.Standard)
	o.Ceiling = cmp.Or(o.Ceiling, tool.Standard)
	if !o.DefaultMode.Within(o.Ceiling) {
		o.DefaultMode = o.Ceiling
	}
	s := &Set{o: o}
	s.tools = map[string]handler{
		"read_file":  handle(s.readFile),
		"write_file": handle(s.writeFile),
		"edit_file":  handle(s.editFile),
		"list_files": handle(s.listFiles),
		"grep":       handle(s.grep),
		"glob":       handle(s.glob),
	}
	if o.Exports != nil {
		s.tools["present_artifact"] = handle(s.presentArtifact)
	}
	if o.Commands != nil {
		s.tools["bash"] = handle(s.bash)
		s.tools["git"] = handle(s.git)
		if !o.Foreground {
			s.tools["process"] = handle(s.process)
		}
	}
	return s
}

// Call runs one tool. What a model can mend by itself, such as a missing file
// or an edit that does not match, is a result with IsError set. It fails with
// a [*tool.Error]:
//
//   - [tool.ToolNotFound] for a name that is no tool, [tool.Unsupported] for
//     one that this set cannot run;
//   - [tool.InvalidParams] for arguments that are not a JSON object;
//   - [tool.PathOutsideRoot] for a path that leaves the workspace;
//   - [tool.Denied] for a mode above the ceiling, or a write in read_only;
//   - [tool.EnvironmentLost] when the workspace is not at its path any more;
//   - [tool.Timeout] after r.Timeout, [tool.Cancelled] when ctx ends;
//   - what [Commands] fail with.
func (s *Set) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	run, ok := s.tools[r.Name]
	if !ok {
		return tool.Result{}, s.unknown(r.Name)
	}
	c := &call{Request: r, mode: cmp.Or(r.Mode, s.o.DefaultMode), ceiling: s.o.Ceiling}
	if r.Actor.Kind == tool.ActorSideChat {
		c.mode = tool.ReadOnly
	}
	if !c.mode.Within(s.o.Ceiling) {
		return tool.Result{}, tool.Errorf(tool.Denied, "the permission mode %q is above this environment's ceiling %q", c.mode, s.o.Ceiling).
			WithHint("call with %q or less, or raise max_permission_mode in the profile", s.o.Ceiling)
	}
	if r.Timeout > 0 {
		var cancel func()
		ctx, cancel = withTimeout(ctx, r.Name, r.Timeout)
		defer cancel()
	}
	if ctx.Err() != nil {
		return tool.Result{}, ended(ctx)
	}
	if r.Name != "process" { // whose actions need no workspace
		if err := s.o.Root.Check(); err != nil {
			return tool.Result{}, err
		}
	}
	result, err := run(ctx, c)
	if err == nil {
		return result, nil
	}
	return s.failed(ctx, err)
}

// failed sorts an error: what a model can mend becomes a result.
func (s *Set) failed(ctx context.Context, err error) (tool.Result, error) {
	var told refusal
	var kind *tool.Error
	switch {
	case errors.As(err, &told):
		return tool.Failed(string(told)), nil
	case ctx.Err() != nil:
		return tool.Result{}, ended(ctx)
	case errors.As(err, &kind):
		return tool.Result{}, kind
	default:
		return tool.Failed(s.sentence(err)), nil
	}
}

// ended is the error of a call whose context has ended.
func ended(ctx context.Context) error {
	var e *tool.Error
	if cause := context.Cause(ctx); errors.As(cause, &e) {
		return e
	}
	kind, how := tool.EndKind(ctx), "was cancelled"
	if kind == tool.Timeout {
		how = "took too long"
	}
	return tool.Errorf(kind, "the call %s: %w", how, context.Cause(ctx))
}

// unknown is the error of a tool that is not in the set.
func (s *Set) unknown(name string) error {
	i := slices.IndexFunc(Descriptions(), func(d tool.Description) bool { return d.Name == name })
	if i < 0 {
		var names []string
		for _, d := range s.Descriptions() {
			names = append(names, d.Name)
		}
		return tool.Errorf(tool.ToolNotFound, "there is no tool %q", name).WithHint("the tools are %s", strings.Join(names, ", "))
	}
	if s.o.Foreground {
		return noBackground(name + " needs background processes")
	}
	return tool.Errorf(tool.Unsupported, "%s cannot run here", name).
		WithHint("this part of the environment has no processes of its own")
}

// Descriptions are the tools that this set can run, sorted by name.
func (s *Set) Descriptions() []tool.Description {
	all := slices.DeleteFunc(Descriptions(), func(d tool.Description) bool { return s.tools[d.Name] == nil })
	if s.o.Foreground {
		for i := range all {
			if all[i].Name == "bash" {
				all[i] = foregroundBash(all[i])
			}
		}
	}
	return all
}

// mayWrite fails in read_only.
func (c *call) mayWrite() error {
	if c.mode == tool.ReadOnly {
		return tool.Errorf(tool.Denied, "%s writes files, which the permission mode read_only does not allow", c.Name).
			WithHint("%s", c.wider())
	}
	return nil
}

// wider says how a call that may only read would get further, where it may.
func (c *call) wider() string {
	if c.ceiling == tool.ReadOnly {
		return "nothing may be written in this environment, whose calls have the mode read_only at most"
	}
	return tool.HintStandard
}

// limit is the least of a tool's own limit and those of the call and the set, in bytes.
func (s *Set) limit(c *call, own int) int {
	for _, n := range []int64{c.MaxOutputBytes, s.o.MaxOutputBytes} {
		if n > 0 && n < int64(own) {
			own = int(n)
		}
	}
	return max(own, utf8.UTFMax) // a page without room for one character would never end
}

// lock keeps others from changing the file until the returned function is called, by
// whatever path or link they name it.
func (s *Set) lock(name string) func() {
	// A name that leads nowhere has no file to change.
	if resolved, err := s.o.Root.Resolve(name); err == nil {
		name = resolved
	}
	name = strings.ToLower(name) // the file system may not tell case either
	var h uint32 = 2166136261    // FNV-1a
	for i := range len(name) {
		h = (h ^ uint32(name[i])) * 16777619
	}
	m := &s.writing[h%writeLocks]
	m.Lock()
	return m.Unlock
}
