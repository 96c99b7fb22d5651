package tools

import (
	"context"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// Options says what a [Set] works on.
type Options struct {
	// Root is the workspace. Required; the set does not close it.
	Root *workspace.Root
	// Exports takes what present_artifact is given. Nil makes that tool
	// unsupported. The set does not close it.
	Exports *Exports
	// Commands runs bash, git and background processes. Nil makes those tools
	// unsupported.
	Commands Commands
	// DefaultMode is the permission mode of a call that names none; empty
	// means [tool.Standard].
	DefaultMode tool.Mode
	// Ceiling is the widest mode that a call may have; empty means
	// [tool.Standard].
	Ceiling tool.Mode
	// MaxOutputBytes bounds stdout and stderr of one command together, and
	// every page of text; 0 means [DefaultOutputBytes].
	MaxOutputBytes int64
}

// Set is the tools of one workspace. Its methods may be called concurrently.
type Set struct {
	o Options
}

// New makes the tools. It does no work before the first call.
func New(o Options) *Set { return &Set{o: o} }

// Call runs one tool. What a model can mend by itself, such as a missing file
// or an edit that does not match, is a result with IsError set. It fails with
// a [tool.Error]:
//
//   - [tool.ToolNotFound] for a name that is no tool of this set;
//   - [tool.InvalidParams] for arguments that are not a JSON object;
//   - [tool.PathOutsideRoot] for a path that leaves the workspace;
//   - [tool.Denied] for a mode above the ceiling, or a write in read_only;
//   - [tool.Timeout] after r.Timeout, [tool.Cancelled] when ctx ends;
//   - [tool.Unsupported] for what this environment cannot do.
func (s *Set) Call(ctx context.Context, r tool.Request) (tool.Result, error) {
	return tool.Result{}, tool.Errorf(tool.ToolNotFound, "there is no tool %q", r.Name)
}

// Descriptions are the tools that this set can run, sorted by name.
func (s *Set) Descriptions() []tool.Description { return nil }
