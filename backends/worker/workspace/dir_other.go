//go:build !unix

package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// ErrNotDirectory is what opening something else as a directory fails with.
var ErrNotDirectory = errors.New("not a directory")

// Dir is an open directory of a workspace, as a root of its own: no link in it
// leads out of it.
type Dir struct{ root *os.Root }

func (r *Root) newDir(f *os.File, name string) (*Dir, error) {
	f.Close()
	root, err := r.openRoot(name)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// OpenDir opens a directory in d. A link fails.
func (d *Dir) OpenDir(child string) (*Dir, error) {
	if err := d.check(child, fs.ModeDir); err != nil {
		return nil, err
	}
	root, err := d.root.OpenRoot(child)
	if err != nil {
		return nil, err
	}
	return &Dir{root}, nil
}

// Open opens a regular file in d for reading. A link fails.
func (d *Dir) Open(child string) (io.ReadCloser, error) {
	if err := d.check(child, 0); err != nil {
		return nil, err
	}
	return d.root.Open(child)
}

func (d *Dir) check(child string, want fs.FileMode) error {
	info, err := d.root.Lstat(child)
	if err == nil && info.Mode().Type() != want {
		err = &fs.PathError{Op: "open", Path: child, Err: ErrSpecial}
	}
	return err
}

// Entries reads the whole directory, in no order.
func (d *Dir) Entries() ([]Entry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	return entries(list), err
}

// Close closes the directory.
func (d *Dir) Close() error { return d.root.Close() }
