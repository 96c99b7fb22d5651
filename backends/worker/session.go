package worker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker/job"
	"github.com/caisson-dev/caisson/backends/worker/pack"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// session is what the first initialize made: the binding, which never changes,
// and the rooms that serve it.
type session struct {
	binding   wire.Initialize // as it was accepted
	root      *workspace.Root
	exports   *tools.Exports
	processes *process.Manager
	tools     *tools.Set
	packs     *pack.Set
	jobs      *job.Runner
	state     string
	temporary bool      // state goes with the worker
	buffers   sync.Pool // of large reads of output
}

// bind returns the session that in asks for: it opens the first one, and
// afterwards answers only a binding that is equal.
func (s *server) bind(ctx context.Context, in wire.Initialize) (*session, error) {
	if err := s.checkBinding(in); err != nil {
		return nil, err
	}
	select {
	case s.binding <- struct{}{}:
		defer func() { <-s.binding }()
	case <-ctx.Done():
		return nil, tool.Errorf(tool.EndKind(ctx), "initialize was cancelled: %w", context.Cause(ctx))
	}
	s.mu.Lock()
	bound, ending := s.session, s.ending || s.cleaned
	s.mu.Unlock()
	switch {
	case ending:
		return nil, errEnding()
	case bound != nil:
		return bound, bound.same(in)
	}
	opened, err := s.open(in)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		err := tool.Errorf(tool.EndKind(ctx), "initialize was cancelled: %w", context.Cause(ctx))
		return nil, errors.Join(err, opened.close(context.WithoutCancel(ctx), false))
	}
	s.mu.Lock()
	s.session = opened
	s.mu.Unlock()
	return opened, nil
}

// checkBinding checks what can be checked before anything is touched.
func (s *server) checkBinding(in wire.Initialize) error {
	invalid := func(member, format string, args ...any) error {
		return tool.Errorf(tool.InvalidParams, format, args...).WithPath(member)
	}
	switch {
	case in.Version != wire.Version:
		return tool.Errorf(tool.ProtocolMismatch, "the host speaks protocol version %d and this worker %d", in.Version, wire.Version).
			WithHint("use a service and a worker of the same release")
	case !isComponent(in.Session):
		return invalid("session", "the session %q is not one path component", in.Session)
	case in.Identity != "" && !isComponent(in.Identity):
		return invalid("identity", "the identity %q is not one path component", in.Identity)
	case !filepath.IsAbs(in.Root) || strings.ContainsRune(in.Root, 0):
		return invalid("root", "the root %q is not an absolute path", in.Root)
	case s.o.Session != "" && in.Session != s.o.Session:
		return tool.Errorf(tool.Denied, "this worker serves the session %q and no other", s.o.Session)
	case len(in.Environment) > maxVariables:
		return invalid("environment", "%d variables are more than %d", len(in.Environment), maxVariables)
	}
	size := 0
	for name, value := range in.Environment {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return invalid("environment", "%q cannot be the name of a variable", name)
		}
		if strings.ContainsRune(value, 0) {
			return invalid("environment", "the value of %s holds a NUL byte", name)
		}
		size += len(name) + len(value)
	}
	if size > maxVariableBytes {
		return invalid("environment", "the variables are %d bytes, more than %d", size, maxVariableBytes)
	}
	return nil
}

// open makes what the binding asks for. When it fails nothing stays open.
func (s *server) open(in wire.Initialize) (_ *session, err error) {
	o := &session{binding: in, state: s.o.State}
	o.buffers.New = func() any { return new([process.MaxReadBytes]byte) }
	defer func() {
		if err != nil {
			err = errors.Join(err, o.letGo(context.Background()))
		}
	}()
	if err := makeRoot(in); err != nil {
		return nil, err
	}
	if o.root, err = workspace.Open(in.Root); err != nil {
		return nil, tool.Errorf(tool.Internal, "open the workspace: %w", err).WithPath(in.Root)
	}
	if o.state == "" {
		if o.state, err = os.MkdirTemp("", "caisson-worker-"); err != nil {
			return nil, tool.Errorf(tool.Internal, "make a state directory: %w", err).WithDisk(os.TempDir())
		}
		o.temporary = true
	}
	o.processes, err = process.NewManager(process.Options{
		StateDir:       o.state,
		Session:        in.Session,
		Root:           o.root.Dir(),
		Shell:          s.o.Shell,
		Env:            environment(s.o.ownVariables(), in.Environment),
		DefaultMode:    s.o.Mode,
		Ceiling:        s.o.Ceiling,
		WritablePaths:  slices.Concat(s.o.Writable, workspace.GitDirectories(o.root.Dir())),
		Shared:         s.o.Shared,
		Contained:      s.o.Contained,
		MaxOutputBytes: s.o.MaxOutputBytes,
		OnEvent:        s.emit,
		AdoptOrphans:   s.o.AdoptOrphans,
		Log:            s.log,
	})
	if err != nil {
		return nil, err
	}
	o.exports = tools.NewExports(filepath.Join(SessionDir(o.state, in.Session), "exports"))
	o.tools = tools.New(tools.Options{
		Root:           o.root,
		Exports:        o.exports,
		Commands:       o.processes,
		Foreground:     s.o.Foreground,
		DefaultMode:    s.o.Mode,
		Ceiling:        s.o.Ceiling,
		MaxOutputBytes: s.o.MaxOutputBytes,
	})
	o.jobs = job.New(job.Options{
		Root: o.root, Commands: o.processes, Exports: o.exports,
		Dir: JobsDir(o.state, in.Session), Log: s.log,
	})
	o.packs = pack.New(pack.Options{
		Dir: filepath.Join(SessionDir(o.state, in.Session), "packs"), Runner: o.processes, Check: o.root.Check,
	})
	return o, nil
}

// makeRoot makes a missing workspace, unless it must be there.
func makeRoot(in wire.Initialize) error {
	info, err := os.Stat(in.Root)
	switch {
	case err == nil && !info.IsDir():
		return tool.Errorf(tool.InvalidParams, "the workspace %s is not a directory", in.Root).WithPath("root")
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return tool.Errorf(tool.Internal, "look at the workspace: %w", err).WithPath(in.Root)
	case in.RequireExistingWorkspace:
		return tool.Errorf(tool.EnvironmentLost, "the workspace %s is not there any more", in.Root).WithPath(in.Root).
			WithHint("bring it back, or delete the session and open a new one")
	}
	if err := os.MkdirAll(in.Root, 0o700); err != nil {
		return tool.Errorf(tool.Internal, "make the workspace: %w", err).WithPath(in.Root)
	}
	return nil
}

// stale are variables of the program that started the worker that say nothing
// about the environment.
var stale = []string{"PWD", "OLDPWD", "_"}

// ofConnection are variables by which sshd tells of the connection that the worker
// happens to have been started over, and outlives. A bash that finds them takes
// itself for the one that sshd has started, and reads its startup file for every
// command.
var ofConnection = []string{"SSH_CLIENT", "SSH2_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SSH_ORIGINAL_COMMAND"}

// ownVariables are the worker's own that say something about the environment.
func (o Options) ownVariables() []string {
	own := os.Environ()
	if o.Site == "" {
		return own
	}
	return slices.DeleteFunc(own, func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(ofConnection, name)
	})
}

// defaultPath is the PATH of an environment that has none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is what commands see: the worker's own variables, and over them
// those of the session.
func environment(own []string, given map[string]string) []string {
	all := map[string]string{"PATH": defaultPath}
	for _, variable := range own {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" && !slices.Contains(stale, name) {
			all[name] = value
		}
	}
	maps.Copy(all, given)
	list := make([]string, 0, len(all))
	for name, value := range all {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

// same says why in is another binding than that of the session. A host that
// comes back may leave the environment out, and may by now require the
// workspace to exist, which it does.
func (o *session) same(in wire.Initialize) error {
	if in.Root == o.root.Dir() {
		in.Root = o.binding.Root // with its symlinks resolved, as it was answered
	}
	return o.binding.Same(in, "the worker")
}

// actor is who a frame says that it is.
func (o *session) actor(id string, kind tool.ActorKind) (tool.Actor, error) {
	a := tool.Actor{ID: id, Kind: kind}
	switch {
	case kind == "" && id == o.binding.Session:
		a.Kind = tool.ActorMain
	case kind == "":
		a.Kind = tool.ActorSubagent
	case kind != tool.ActorSideChat:
		return a, tool.Errorf(tool.InvalidParams, "there is no kind of actor %q here", kind).WithPath("actor_kind")
	case id == "" || id == o.binding.Session:
		return a, tool.Errorf(tool.InvalidParams, "a side chat needs a name of its own").WithPath("actor")
	}
	return a, nil
}

// removeOnExit reports whether the host said that the workspace goes with the
// worker.
func (o *session) removeOnExit() bool { return o != nil && o.binding.RemoveWorkspaceOnExit }

// close stops the processes and lets go of the files. Only when all of that
// worked does it remove the workspace, if that is asked for, and a temporary
// state directory: after a failure everything is kept for inspection.
func (o *session) close(ctx context.Context, remove bool) error {
	if o == nil {
		return nil
	}
	if err := o.letGo(ctx); err != nil {
		return err
	}
	if remove {
		return removeWorkspace(o.root.Dir())
	}
	return nil
}

// forget removes what is kept of the session, which is closed.
func (o *session) forget() error {
	if o == nil || o.temporary {
		return nil // it never was, or is gone
	}
	return forgetSession(o.state, o.binding.Session)
}

// letGo undoes open as far as it came.
func (o *session) letGo(ctx context.Context) error {
	var err error
	if o.processes != nil {
		if stop := o.processes.Close(ctx); stop != nil {
			err = fmt.Errorf("stop the processes: %w", stop)
		}
	}
	if o.exports != nil {
		err = errors.Join(err, o.exports.Close())
	}
	if o.root != nil {
		err = errors.Join(err, o.root.Close())
	}
	if o.temporary && err == nil {
		err = workspace.Remove(o.state)
	}
	return err
}
