package session

import (
	"bytes"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

const (
	// maxNearby is how many directories a hint names. More are counted.
	maxNearby = 8
	// nearbyTime bounds how long they are looked for: the error that they are for is
	// known already.
	nearbyTime = 2 * time.Second
)

// toWrite says what a call has to be for its tool to write, of what is allowed here. A call
// that may only read has been refused, or has written less than it wanted.
func (p *place) toWrite(a tool.Actor, c Constraints) string {
	limits := p.toolLimits()
	switch {
	case p.saved.Profile.MaxPermissionMode == tool.ReadOnly:
		return "Nothing writes here: the profile " + limits.Name + ", or a limit of the project or the session, allows the mode read_only only. What writes needs another session."
	case limits.MaxPermissionMode == tool.ReadOnly:
		return "No tool writes in this session: it was opened with the constraint filesystem read_only. What writes needs another session."
	case a.Kind == tool.ActorSideChat:
		return "A side chat only reads. The main agent may call it in the mode standard."
	case c.Filesystem != "":
		return "Call it without the constraint filesystem, in the mode standard."
	}
	return "Call it in the mode standard."
}

// mayWrite reports whether the same call could be made in a wider mode than read_only.
func (p *place) mayWrite(a tool.Actor, c Constraints) bool {
	return p.toolLimits().MaxPermissionMode != tool.ReadOnly && a.Kind != tool.ActorSideChat && c.Filesystem == ""
}

// fittingError is an error of a call whose hint asks for no more than the session allows.
func (p *place) fittingError(err error, r CallRequest) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Hint != tool.HintStandard || p.mayWrite(r.Actor, r.Constraints) {
		return err
	}
	told := *e
	return told.WithHint("%s", p.toWrite(r.Actor, r.Constraints))
}

// fitting is the same of a result, which has its hint in a member.
func (p *place) fitting(result tool.Result, r CallRequest) tool.Result {
	if !bytes.Contains(result.StructuredContent, []byte(`"hint":"`)) || p.mayWrite(r.Actor, r.Constraints) {
		return result
	}
	// Within a text quotes have a backslash before them, so that the member is no part of one.
	before, after, _ := bytes.Cut(result.StructuredContent, []byte(`"hint":"`))
	hint, after, _ := bytes.Cut(after, []byte(`"`))
	if said, ok := bytes.CutSuffix(hint, []byte(tool.HintStandardBehind)); ok {
		said = append(bytes.Clone(said), ". "+p.toWrite(r.Actor, r.Constraints)...)
		result.StructuredContent = slices.Concat(before, []byte(`"hint":"`), said, []byte(`"`), after)
	}
	return result
}

// whereabouts is an error of what was to work in a directory, with a hint of the directories
// that there are.
func whereabouts(ctx context.Context, env backends.Environment, cwd string, err error) error {
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || cwd == "" || e.Hint != "" || e.Kind != tool.PathOutsideRoot && (e.Kind != tool.InvalidParams || e.Path != "cwd") {
		return err
	}
	told := *e
	hint := "Name a directory that is there, relative to the workspace: . is the workspace itself."
	if files, ok := env.(backends.FileSystem); ok && e.Kind == tool.InvalidParams {
		hint += nearby(ctx, files, cwd)
	}
	return told.WithHint("%s", hint)
}

// nearby names the directories beside the first one of a path that is not there; "" where
// that cannot be told.
func nearby(ctx context.Context, files backends.FileSystem, cwd string) string {
	ctx, cancel := context.WithTimeout(ctx, nearbyTime)
	defer cancel()
	for dir := path.Dir(path.Clean(cwd)); ctx.Err() == nil; dir = path.Dir(dir) {
		list, err := files.ReadDirectory(ctx, dir)
		if err == nil {
			return listed(dir, list)
		}
		if dir == "." || dir == "/" {
			break
		}
	}
	return ""
}

func listed(dir string, list []backends.FileInfo) string {
	var names []string
	for _, f := range list {
		if f.Type == "directory" && !strings.HasPrefix(f.Name, ".") {
			names = append(names, shortened(f.Name))
		}
	}
	if dir == "." {
		dir = "the workspace"
	}
	dir = shortened(dir)
	if len(names) == 0 {
		return " There is no directory in " + dir + "."
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxNearby; n > 0 {
		names, more = names[:maxNearby], " and "+strconv.Itoa(n)+" more"
	}
	return " The directories in " + dir + " are " + strings.Join(names, ", ") + more + "."
}

// shortened is a name as a hint shows it: in a line, and not for ever.
func shortened(name string) string {
	const most = 80
	if quoted := strconv.Quote(name); quoted != `"`+name+`"` || len(name) > most {
		return quoted[:min(len(quoted), most)]
	}
	return name
}
