package workspace

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Root is an open directory. It stays the same directory when somebody renames
// it. Its methods may be called concurrently; names are those that [Root.Name]
// returns.
type Root struct {
	dir   string   // absolute, symbolic links resolved
	names []string // dir and what it was opened as, for absolute paths
	root  *os.Root
}

// Open opens an existing directory.
func Open(dir string) (*Root, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	resolved, err := filepath.EvalSymlinks(abs)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(resolved)
	if err != nil {
		return nil, err
	}
	names := []string{resolved}
	if abs = filepath.Clean(abs); abs != resolved {
		names = append(names, abs)
	}
	return &Root{dir: resolved, names: slices.Clip(names), root: root}, nil
}

// Close lets go of the directory. Open files stay usable.
func (r *Root) Close() error { return r.root.Close() }

// Dir is the directory's absolute path, symbolic links resolved, as commands
// in the same environment see it.
func (r *Root) Dir() string { return r.dir }

// Abs is the absolute path of a name.
func (r *Root) Abs(name string) string { return filepath.Join(r.dir, filepath.FromSlash(name)) }

// errSpecial is what a device, pipe or socket gets where a regular file is needed.
var errSpecial = errors.New("not a regular file")

// Open opens a regular file or directory for reading. It never blocks on a
// pipe and refuses devices, pipes and sockets.
func (r *Root) Open(name string) (*os.File, fs.FileInfo, error) {
	return nil, nil, errSpecial
}
