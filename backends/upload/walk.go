package upload

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/ignore"
	"github.com/caisson-dev/caisson/backends/tool"
)

// entry is one thing that is sent. Its parent directory is open while it is
// visited.
type entry struct {
	parent *os.Root
	name   string
	path   string // relative to the folder, with slashes
	info   fs.FileInfo
}

// walk visits the folder's entries, each directory before what is in it, in the
// order of their names.
type walk struct {
	ctx   context.Context
	visit func(e entry) error
	// below is where the folder lies in the repository that it is a part of, with a
	// slash at its end: the rules of ignore files are relative to that.
	below string
}

// walkFolder visits everything that is to be sent of a folder.
func walkFolder(ctx context.Context, folder string, visit func(e entry) error) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return unreadable(".", err)
	}
	defer root.Close()
	w := &walk{ctx: ctx, visit: visit}
	var rules ignore.Rules
	w.below, rules = surroundings(folder)
	return w.directory(root, "", rules, 0)
}

// directory visits what is in a directory. Its path has a slash at its end, or
// is "". Of a repository's own data everything is sent: git knows of no ignored
// files there.
func (w *walk) directory(dir *os.Root, path string, rules ignore.Rules, depth int) error {
	if depth > maxDepth {
		return tool.Errorf(tool.Unsupported, "the folder has more than %d directories in each other, at %s", maxDepth, path)
	}
	entries, err := list(dir)
	if err != nil {
		return unreadable(path, err)
	}
	var found ignore.Found
	for _, e := range entries {
		found.Note(e.Name(), e.IsDir())
	}
	rules = rules.Enter(w.below+path, found, func(name string) []byte { return head(dir, name) })
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return context.Cause(w.ctx)
		}
		name, whole := e.Name(), e.IsDir() && ignore.VersionControl(e.Name())
		if !whole && name != ".git" && rules.Ignores(w.below+path+name, name, e.IsDir()) {
			continue
		}
		if err := w.entry(dir, path, name, rules, whole, depth); err != nil {
			return err
		}
	}
	return nil
}

// entry visits one entry and what is below it. One that has gone since its
// directory was read is passed over.
func (w *walk) entry(dir *os.Root, path, name string, rules ignore.Rules, whole bool, depth int) error {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(path+name, err)
	}
	if err := w.visit(entry{parent: dir, name: name, path: path + name, info: info}); err != nil || !info.IsDir() {
		return err
	}
	below, err := openDirectory(dir, name, info)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(path+name, err)
	}
	defer below.Close()
	if whole {
		return w.everything(below, path+name+"/", depth+1)
	}
	return w.directory(below, path+name+"/", rules, depth+1)
}

// everything visits what is in a directory that no rules apply to.
func (w *walk) everything(dir *os.Root, path string, depth int) error {
	if depth > maxDepth {
		return tool.Errorf(tool.Unsupported, "the folder has more than %d directories in each other, at %s", maxDepth, path)
	}
	entries, err := list(dir)
	if err != nil {
		return unreadable(path, err)
	}
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return context.Cause(w.ctx)
		}
		if err := w.entry(dir, path, e.Name(), ignore.Rules{}, true, depth); err != nil {
			return err
		}
	}
	return nil
}

// openDirectory opens a directory that must be the one which was looked at, and
// no link that has taken its place.
func openDirectory(dir *os.Root, name string, was fs.FileInfo) (*os.Root, error) {
	below, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	is, err := below.Stat(".")
	if err == nil && !os.SameFile(was, is) {
		err = errChanged
	}
	if err != nil {
		return nil, errors.Join(err, below.Close())
	}
	return below, nil
}

// list reads a directory, sorted by name.
func list(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// head is what an ignore file says, nothing when it cannot be read.
func head(dir *os.Root, name string) []byte {
	info, err := dir.Lstat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	f, err := dir.Open(filepath.FromSlash(name))
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

// surroundings are the rules of the repository that a folder is a part of, those
// of its directories above the folder, and the folder's place in it.
func surroundings(folder string) (below string, rules ignore.Rules) {
	folder = filepath.Clean(folder)
	if resolved, err := filepath.EvalSymlinks(folder); err == nil {
		folder = resolved // git looks from the real place, too
	}
	top := folder
	for !has(top, ".git") {
		above := filepath.Dir(top)
		if above == top {
			return "", rules // in no repository
		}
		top = above
	}
	inside, err := filepath.Rel(top, folder)
	if err != nil || inside == "." {
		return "", rules // the folder reads its own
	}
	at := ""
	for part := range strings.SplitSeq(filepath.ToSlash(inside), "/") {
		rules = rulesOf(filepath.Join(top, filepath.FromSlash(at)), at, rules)
		at += part + "/"
	}
	return at, rules
}

// rulesOf adds what the ignore files of one directory say.
func rulesOf(path, at string, rules ignore.Rules) ignore.Rules {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return rules // what cannot be read rules nothing
	}
	defer dir.Close()
	var found ignore.Found
	for _, name := range []string{".git", ".gitignore", ".ignore"} {
		if info, err := dir.Lstat(name); err == nil {
			found.Note(name, info.IsDir())
		}
	}
	return rules.Enter(at, found, func(name string) []byte { return head(dir, name) })
}

func has(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

// errChanged is a file that is not what it was a moment ago.
var errChanged = errors.New("it was replaced meanwhile")

// unreadable is the error of what cannot be sent. It is not left out: who works
// on a copy that lacks files without a word goes wrong.
func unreadable(path string, err error) error {
	failure := tool.Errorf(tool.Denied, "%q of the folder cannot be read to be sent: %w", path, err).
		WithHint("make it readable, or have .gitignore or .ignore leave it out")
	if errors.Is(err, errChanged) || errors.Is(err, fs.ErrNotExist) {
		failure.Kind, failure.Retryable = tool.Internal, true
	}
	return failure
}
