package job

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/backends/worker/process"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// lockFile, in a job's directory and beside what the job may write, is locked as
// long as the job's worker lives.
const lockFile = "lock"

// place is the directory of one job, its worker's lock on it and, in it, what the
// job has.
type place struct {
	process.Place
	parent, name string
	lock         *endpoint.Lock
}

// newPlace makes a directory, where programs in it can be executed if there is
// such a place.
func (r *Runner) newPlace() (*place, error) {
	p, err := makePlace(r.o.Dir)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "make a directory for the job: %w", err).WithPath(r.o.Dir).WithDisk(filepath.Dir(r.o.Dir))
	}
	if !r.o.NoExec(p.Dir) || r.o.NoExec(r.o.Root.Dir()) {
		return p, nil
	}
	other, err := makePlace(r.inWorkspace())
	if err != nil {
		return p, nil // scripts run all the same: their interpreter is elsewhere
	}
	if err := p.remove(); err != nil {
		r.o.Log.Warn("a directory was not removed", "directory", p.Dir, "error", err)
	}
	return other, nil
}

func makePlace(parent string) (*place, error) {
	for try := 1; ; try++ {
		p, err := tryPlace(parent)
		if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, endpoint.ErrLocked) || try == maxTries {
			return p, err
		}
		// Somebody has removed the parent, which was empty, or took the new one for a
		// dead job's.
	}
}

func tryPlace(parent string) (_ *place, err error) {
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, err
	}
	// One in the workspace may be anybody's: a link in its place is refused here and
	// wherever something is removed.
	in, err := workspace.OpenDir(parent)
	if err != nil {
		return nil, err
	}
	in.Close()
	// As the kernel tells where a process works.
	if parent, err = filepath.EvalSymlinks(parent); err != nil {
		return nil, err
	}
	p := &place{parent: parent, name: newName()}
	base := filepath.Join(parent, p.name)
	if err := os.Mkdir(base, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.remove())
		}
	}()
	now, cancel := context.WithCancel(context.Background())
	cancel()
	if p.lock, err = endpoint.Acquire(now, filepath.Join(base, lockFile)); err != nil {
		return nil, err
	}
	p.Dir = filepath.Join(base, "job")
	p.Work, p.Temp = filepath.Join(p.Dir, "work"), filepath.Join(p.Dir, "tmp")
	for _, dir := range []string{p.Dir, p.Work, p.Temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// remove removes the directory, and the parent when nothing else is in it.
func (p *place) remove() error {
	in, err := workspace.OpenDir(p.parent)
	if err == nil {
		err = errors.Join(workspace.RemoveAll(in, p.name), in.Close())
	}
	if p.lock != nil {
		err = errors.Join(err, p.lock.Unlock())
	}
	_ = os.Remove(p.parent) // mostly there are others in it
	return err
}

// disk is a directory on the disk of the place that stays when it is removed.
func (p *place) disk() string { return filepath.Dir(p.parent) }

// write writes a file that is not there yet into dir.
func (p *place) write(dir, name string, data []byte) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	return write(root, name, data)
}

// write writes a file that is not there yet, which may be a program.
func write(root *os.Root, name string, data []byte) error {
	if dir := path.Dir(name); dir != "." {
		if err := root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o700)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// newName names a job's directory, and ours tells whether a name is such a one.
func newName() string { return strings.ToLower(rand.Text()[:nameLength]) }

func ours(name string) bool {
	return len(name) == nameLength && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// inputs is where a job's input files go and its outputs are looked for.
type inputs interface {
	write(name string, data []byte) error
	directory() *os.Root
	// leaves reports whether what is called name is not to come back.
	leaves(name string) bool
	// disk is a directory that stays on the disk that they are written to.
	disk() string
	close()
}

// ownInputs are those of a job in its own directory.
type ownInputs struct {
	root *os.Root
	on   string
}

func (p *place) own() (inputs, error) {
	root, err := os.OpenRoot(p.Work)
	if err != nil {
		return nil, tool.Errorf(tool.Internal, "open the job's directory: %w", err).WithPath(p.Work)
	}
	return ownInputs{root, p.disk()}, nil
}

func (o ownInputs) write(name string, data []byte) error { return write(o.root, name, data) }
func (o ownInputs) directory() *os.Root                  { return o.root }
func (o ownInputs) leaves(string) bool                   { return false }
func (o ownInputs) disk() string                         { return o.on }
func (o ownInputs) close()                               { o.root.Close() }

// cwdInputs are those of a job in the workspace: written as tools write, and what
// tools leave alone they leave alone.
type cwdInputs struct {
	ownInputs
	workspace *workspace.Root
	base      string // leads through no link
	all       bool   // of the files, as tools in the mode unconfined
}

func (r *Runner) inCWD(q tool.JobRequest) (inputs, error) {
	base, err := r.o.Root.Name(q.CWD)
	if err != nil {
		return nil, err
	}
	if len(q.Inputs) > 0 && (q.Mode == tool.ReadOnly || q.Actor.Kind == tool.ActorSideChat) {
		return nil, tool.Errorf(tool.Denied, "input files in the workspace are written, and this job may only read").WithPath("cwd").
			WithHint("run it without cwd, in a directory of its own")
	}
	if base, err = r.o.Root.Resolve(base); err == nil {
		var root *os.Root
		if root, err = r.o.Root.OpenRoot(base); err == nil {
			return cwdInputs{ownInputs{root, r.o.Root.Dir()}, r.o.Root, base, q.Mode == tool.Unconfined}, nil
		}
	}
	var known *tool.Error
	switch {
	case errors.As(err, &known):
		return nil, err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrPermission),
		errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return nil, tool.Errorf(tool.InvalidParams, "the job's directory %q cannot be used: %w", q.CWD, cause(err)).WithPath("cwd").
			WithHint("name a directory of the workspace that is there, or leave cwd out to run in a fresh one")
	}
	return nil, tool.Errorf(tool.Internal, "open the job's directory %q: %w", q.CWD, cause(err)).WithPath("cwd")
}

func (c cwdInputs) write(name string, data []byte) error {
	full := path.Join(c.base, name)
	if !c.all {
		why, err := tools.Guarded(c.workspace, full)
		if err != nil {
			return err
		}
		if why != "" {
			return tool.Errorf(tool.Denied, "a job's input does not replace %q: %s", c.workspace.Format(full), why).WithPath("inputFiles." + name).
				WithHint("let the job write it, or run the job in a directory of its own")
		}
	}
	_, err := c.workspace.Write(full, data, workspace.WriteOptions{})
	return err
}

func (c cwdInputs) leaves(name string) bool {
	if c.all {
		return false
	}
	why, err := tools.Guarded(c.workspace, path.Join(c.base, name))
	return err != nil || why != ""
}
