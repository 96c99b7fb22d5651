package search

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/caisson-dev/caisson/backends/ignore"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

const (
	// maxWorkers bounds the goroutines of one walk. More do not help: they wait
	// for the same disk or the same kernel locks.
	maxWorkers = 8
	// batch is how many files of one directory a worker takes at a time, so that a
	// single large directory keeps every worker busy.
	batch = 64
)

// workers is how many goroutines a walk uses.
func workers() int { return min(max(runtime.GOMAXPROCS(0), 1), maxWorkers) }

// file is a regular file that a walk came to.
type file struct {
	dir  *dir
	name string
	path string // relative to the workspace
}

// open opens the file without following a link.
func (f *file) open() (io.ReadCloser, error) { return f.dir.handle.Open(f.name) }

// dir is an open directory that is closed when nothing below it is waiting
// any more.
type dir struct {
	handle *workspace.Dir
	path   string // relative to the workspace with a slash after it, "" for the root
	depth  int    // below the base
	users  atomic.Int32
	rules  ignore.Rules
}

func (d *dir) release() {
	if d.users.Add(-1) == 0 {
		d.handle.Close()
	}
}

// job is work for a worker: a subdirectory of parent to enter, or some of
// parent's files.
type job struct {
	parent *dir
	name   string   // the subdirectory; "" for files
	files  []string // names
}

// walkOptions say what a walk comes to.
type walkOptions struct {
	// depth is how many directories below the base are entered; below 0: all.
	depth int
	// keep is asked about a file before the ignore files are; nil keeps all.
	keep func(path, name string) bool
	// visit is called concurrently, by each worker for one file at a time. Its
	// first error ends the walk.
	visit func(worker int, f *file) error
}

// walk is one parallel walk. Its stack is worked from the top, which keeps few
// directories open and the stack short.
type walk struct {
	ctx context.Context
	walkOptions

	mu    sync.Mutex
	ready sync.Cond
	stack []job
	idle  int // workers that wait
	total int // workers
	err   error

	unreadable atomic.Int64
}

// walkFiles visits every regular file below base, a directory relative to the
// root, that the ignore files let through. It returns how many directories
// could not be read.
//
// base itself is walked even if it is ignored: whoever names it wants it.
func walkFiles(ctx context.Context, root *workspace.Root, base string, o walkOptions) (unreadable int64, err error) {
	top, err := openBase(root, base)
	if err != nil {
		return 0, err
	}
	w := &walk{ctx: ctx, walkOptions: o, total: workers()}
	w.ready.L = &w.mu
	// The first directory is entered by itself, as it has no parent here.
	top.users.Store(1)
	if err := w.enter(0, top); err != nil {
		w.err = err
	}
	var group sync.WaitGroup
	for i := range w.total {
		group.Go(func() { w.work(i) })
	}
	group.Wait()
	for _, j := range w.stack { // left by an error
		j.parent.release()
	}
	return w.unreadable.Load(), w.err
}

// work takes jobs until there are none and nobody can make new ones.
func (w *walk) work(worker int) {
	for {
		j, ok := w.next()
		if !ok {
			return
		}
		err := w.do(worker, j)
		j.parent.release()
		if err != nil {
			w.fail(err)
		}
	}
}

func (w *walk) next() (job, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.stack) == 0 && w.err == nil {
		if w.idle++; w.idle == w.total {
			w.ready.Broadcast()
			return job{}, false
		}
		w.ready.Wait()
		if w.idle == w.total {
			return job{}, false
		}
		w.idle--
	}
	if w.err != nil {
		return job{}, false
	}
	last := len(w.stack) - 1
	j := w.stack[last]
	w.stack[last] = job{}
	w.stack = w.stack[:last]
	return j, true
}

func (w *walk) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.err = err
	}
	w.ready.Broadcast()
}

// push adds jobs, each of which holds its parent.
func (w *walk) push(jobs []job) {
	if len(jobs) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stack = append(w.stack, jobs...)
	if len(jobs) > 1 {
		w.ready.Broadcast()
	} else {
		w.ready.Signal()
	}
}

func (w *walk) do(worker int, j job) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	if j.name == "" {
		return w.files(worker, j.parent, j.files)
	}
	handle, err := j.parent.handle.OpenDir(j.name)
	if err != nil {
		if !gone(err) {
			w.unreadable.Add(1)
		}
		return nil
	}
	d := &dir{handle: handle, path: j.parent.path + j.name + "/", depth: j.parent.depth + 1, rules: j.parent.rules}
	d.users.Store(1)
	defer d.release()
	return w.enter(worker, d)
}

// enter reads a directory, leaves what it holds to be done by anyone, and does a part
// of the files itself.
func (w *walk) enter(worker int, d *dir) error {
	entries, err := d.handle.Entries()
	if err != nil {
		w.unreadable.Add(1)
	}
	d.readRules(entries)
	var jobs []job
	var files []string
	for _, e := range entries {
		p := d.path + e.Name
		switch {
		case e.Type.IsDir():
			if (w.depth < 0 || d.depth < w.depth) && !ignore.VersionControl(e.Name) && !d.rules.Ignores(p, e.Name, true) {
				jobs = append(jobs, job{parent: d, name: e.Name})
			}
		case e.Type.IsRegular():
			// The name is the cheaper question.
			if e.Name != ".git" && (w.keep == nil || w.keep(p, e.Name)) && !d.rules.Ignores(p, e.Name, false) {
				files = append(files, e.Name)
			}
		}
	}
	for len(files) > batch {
		jobs = append(jobs, job{parent: d, files: files[:batch]})
		files = files[batch:]
	}
	d.users.Add(int32(len(jobs)))
	w.push(jobs)
	return w.files(worker, d, files)
}

func (w *walk) files(worker int, d *dir, names []string) error {
	for _, name := range names {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err := w.visit(worker, &file{dir: d, name: name, path: d.path + name}); err != nil {
			return err
		}
	}
	return nil
}

// gone reports an entry that is no longer what the directory said.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, workspace.ErrNotDirectory)
}

// readRules adds what the directory's own ignore files say.
func (d *dir) readRules(entries []workspace.Entry) {
	var found ignore.Found
	for _, e := range entries {
		found.Note(e.Name, e.Type.IsDir())
	}
	d.rules = d.rules.Enter(d.path, found, func(name string) []byte {
		if name == ".git/info/exclude" {
			return d.exclude()
		}
		return d.read(name)
	})
}

// read returns the content of an ignore file, nothing when it cannot be read.
func (d *dir) read(name string) []byte {
	f, err := d.handle.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, ignore.MaxFile))
	if err != nil {
		return nil
	}
	return content
}

// exclude returns the content of .git/info/exclude.
func (d *dir) exclude() []byte {
	git, err := d.handle.OpenDir(".git")
	if err != nil {
		return nil
	}
	defer git.Close()
	info, err := git.OpenDir("info")
	if err != nil {
		return nil
	}
	defer info.Close()
	return (&dir{handle: info}).read("exclude")
}

// openBase opens the directory where a walk begins, with the rules of those
// above it.
func openBase(root *workspace.Root, base string) (*dir, error) {
	handle, err := root.OpenDir(base)
	if err != nil {
		return nil, err
	}
	top := &dir{handle: handle}
	if base == "." {
		return top, nil
	}
	top.path = base + "/"
	for at, rest := ".", base; rest != ""; {
		above := &dir{rules: top.rules}
		if at != "." {
			above.path = at + "/"
		}
		if above.handle, err = root.OpenDir(at); err != nil {
			break // what cannot be read rules nothing
		}
		entries, _ := above.handle.Entries()
		above.readRules(entries)
		above.handle.Close()
		top.rules = above.rules
		var part string
		part, rest, _ = strings.Cut(rest, "/")
		at = path.Join(at, part)
	}
	return top, nil
}
