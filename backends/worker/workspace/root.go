package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/diskfile"
)

// maxLinks is how many symbolic links one name may lead through: what Linux
// allows too.
const maxLinks = 40

// ErrSpecial is what a device, pipe or socket gets where a regular file is
// needed: reading one may block for ever or never end.
var ErrSpecial = errors.New("not a regular file")

// Root is an open directory. It stays the same directory when somebody renames
// it. Its methods may be called concurrently; names are those that [Root.Name]
// returns. Errors are [*tool.Error] of kind [tool.PathOutsideRoot] for a link
// that leads out, else those of package os.
type Root struct {
	dir   string   // absolute, symbolic links resolved
	names []string // dir and what it was opened as, for absolute paths
	root  *os.Root
	self  identity // of dir when it was opened
	// shown is how messages name the directory, and prefix what names are written
	// with, "" for nothing.
	shown, prefix string

	plainOnce sync.Once
	plain     plain

	sweptMu sync.Mutex
	swept   map[string]struct{} // directories by name
}

// Open opens an existing directory. Protocols have its path as text: one that is none,
// also behind a link, is [tool.Unsupported].
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	if !utf8.ValidString(resolved) {
		return nil, tool.Errorf(tool.Unsupported, "the directory %s is at %s, a path that is not UTF-8", abs, Format(resolved)).
			WithHint("rename what of the path is not, and open it again")
	}
	root, self, err := openAt(resolved)
	if err != nil {
		return nil, err
	}
	names := []string{resolved}
	if abs != resolved {
		names = append(names, abs)
	}
	return &Root{dir: resolved, names: names, root: root, self: identityOf(self), shown: resolved}, nil
}

// OpenDir opens the directory that is at dir, whose last part may not be a link: one
// that somebody has put there leads to what is not meant.
func OpenDir(dir string) (*os.Root, error) {
	root, _, err := openAt(dir)
	return root, err
}

// openAt is OpenDir, and says which directory it is.
func openAt(dir string) (*os.Root, fs.FileInfo, error) {
	there, err := os.Lstat(dir)
	if err != nil {
		return nil, nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, err
	}
	opened, err := root.Stat(".")
	if err == nil && (!there.IsDir() || !os.SameFile(there, opened)) {
		err = &fs.PathError{Op: "open", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return nil, nil, errors.Join(err, root.Close())
	}
	return root, opened, nil
}

// View is how an environment sees a directory whose path is another one there.
type View struct {
	// Path is the directory's path in the environment: absolute paths of tools are
	// below it, and those of this machine are none.
	Path string
	// Absolute has tools write names with Path before them, because another
	// directory is what relative paths are in.
	Absolute bool
}

// OpenAs is Open for an environment that has the directory at another path.
func OpenAs(dir string, v View) (*Root, error) {
	r, err := Open(dir)
	if err != nil {
		return nil, err
	}
	r.names, r.shown = []string{v.Path}, v.Path
	if v.Absolute {
		r.prefix = v.Path
	}
	return r, nil
}

// Format writes a name the way tools give it, as the function [Format] does.
func (r *Root) Format(name string) string {
	if r.prefix != "" {
		name = path.Join(r.prefix, name)
	}
	return Format(name)
}

// Info describes the directory itself.
func (r *Root) Info() (fs.FileInfo, error) { return r.root.Stat(".") }

// Close lets go of the directory. Open files stay usable.
func (r *Root) Close() error {
	r.plainOnce.Do(func() {}) // so that it is not opened any more
	return errors.Join(r.plain.close(), r.root.Close())
}

// Dir is the directory's absolute path, symbolic links resolved, as commands
// in the same environment see it.
func (r *Root) Dir() string { return r.dir }

// Check fails with [tool.EnvironmentLost] when the directory is not to be found
// at its path any more: somebody moved or removed it, or put another one there.
// Commands, which are started by path, would work elsewhere than the Root's
// methods then.
func (r *Root) Check() error {
	now, err := identify(r.dir)
	if err == nil && now.same(r.self) || err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	return tool.Errorf(tool.EnvironmentLost, "the workspace %s was moved, removed or replaced while it was open", r.dir).
		WithHint("put it back; or close the session and open it again, to work in what is there now").WithPath(r.dir)
}

// Abs is the absolute path of a name.
func (r *Root) Abs(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// Open opens a regular file or a directory for reading and says what it is.
// Anything else is [ErrSpecial]; opening a pipe does not block.
func (r *Root) Open(name string) (*os.File, fs.FileInfo, error) {
	f, err := in(r, name, func(name string) (*os.File, error) {
		return r.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	})
	if diskfile.NotOpened(err) { // a socket
		err = &fs.PathError{Op: "open", Path: name, Err: ErrSpecial}
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrSpecial}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// Stat describes a file, through symbolic links.
func (r *Root) Stat(name string) (fs.FileInfo, error) { return in(r, name, r.root.Stat) }

// Lstat describes an entry. A symbolic link is described itself.
func (r *Root) Lstat(name string) (fs.FileInfo, error) {
	info, err := r.root.Lstat(name)
	if err == nil || !escapes(err) {
		return info, err
	}
	local, err := r.resolve(name, false)
	if err != nil {
		return nil, err
	}
	info, err = r.root.Lstat(local)
	return info, r.leaves(name, err)
}

// Readlink returns where a symbolic link leads, as it is written there.
func (r *Root) Readlink(name string) (string, error) {
	target, err := r.root.Readlink(name)
	if err == nil || !escapes(err) {
		return target, err
	}
	local, err := r.resolve(name, false)
	if err != nil {
		return "", err
	}
	target, err = r.root.Readlink(local)
	return target, r.leaves(name, err)
}

// OpenRoot opens a directory as a root of its own, from which no name leads
// further up. It is the caller's to close.
func (r *Root) OpenRoot(name string) (*os.Root, error) { return r.openRoot(name) }

// openRoot opens a directory as a root of its own, from which no name leads
// further up.
func (r *Root) openRoot(name string) (*os.Root, error) {
	// The slash makes a pipe fail instead of blocking.
	return in(r, name, func(name string) (*os.Root, error) { return r.root.OpenRoot(name + "/") })
}

// mkdirAll makes a directory and those above it. Existing ones are left alone.
func (r *Root) mkdirAll(name string) error {
	_, err := in(r, name, func(name string) (struct{}, error) {
		return struct{}{}, r.root.MkdirAll(name, 0o777)
	})
	return err
}

// in does op to a name. An os.Root refuses every absolute link, so that op is tried again
// with links resolved here when one stood in the way. The second
// try is as safe as the first: it goes through the os.Root too.
func in[T any](r *Root, name string, op func(name string) (T, error)) (T, error) {
	v, err := op(name)
	if err == nil || !escapes(err) {
		return v, err
	}
	local, err := r.resolve(name, true)
	if err != nil {
		return v, err
	}
	v, err = op(local)
	return v, r.leaves(name, err)
}

// leaves gives an escape its kind and returns every other error as it is.
func (r *Root) leaves(name string, err error) error {
	if err != nil && escapes(err) {
		return r.linkOutside(name)
	}
	return err
}

// Resolve returns the name without symbolic links of what a name leads to,
// whether or not it exists. It is true of the moment only, and no protection: what
// is opened by it goes through the other methods.
func (r *Root) Resolve(name string) (string, error) {
	// Nearly no name leads through a link, and the plain path tells that sooner.
	for at := 0; at < len(name); at++ {
		if n := strings.IndexByte(name[at:], '/'); n >= 0 {
			at += n
		} else {
			at = len(name)
		}
		info, err := os.Lstat(r.Abs(name[:at]))
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil || info.Mode()&fs.ModeSymlink != 0 {
			return r.resolve(name, true)
		}
	}
	return name, nil
}

// resolve follows the symbolic links of a name by reading them one by one and
// returns a name without any; missing entries count as no links. followLast
// says whether the last component is followed too.
func (r *Root) resolve(name string, followLast bool) (string, error) {
	done := "."
	rest := strings.Split(name, "/")
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			// done holds no links, so that its parent is what stands before it.
			if done == "." {
				return "", r.linkOutside(name)
			}
			done = path.Dir(done)
			continue
		}
		next := path.Join(done, part)
		info, err := r.root.Lstat(next)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 || (len(rest) == 0 && !followLast) {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
		target, err := r.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			local, ok := r.under(target)
			if !ok {
				return "", r.linkOutside(name)
			}
			target, done = local, "."
		}
		rest = append(strings.Split(filepath.ToSlash(target), "/"), rest...)
	}
	return done, nil
}

// escapes recognises what os.Root answers when a name leads out of it; the
// standard library gives that error no name.
func escapes(err error) bool {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		err = linkErr.Err
	}
	return err.Error() == "path escapes from parent"
}

func (r *Root) outside(p string) error {
	return tool.Errorf(tool.PathOutsideRoot, "the path %q is outside the workspace %s", Format(p), r.shown).
		WithHint("give a path relative to the workspace, or an absolute one under it").WithPath(Format(p))
}

func (r *Root) linkOutside(name string) error {
	return tool.Errorf(tool.PathOutsideRoot, "%q leads out of the workspace %s through a symbolic link", r.Format(name), r.shown).
		WithHint("only files inside the workspace can be used").WithPath(r.Format(name))
}
