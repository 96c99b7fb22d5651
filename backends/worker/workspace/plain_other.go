//go:build !linux

package workspace

import (
	"io/fs"
	"os"
)

type plain struct{}

func (plain) close() error { return nil }

// OpenPlain has no quick way here: it is always false.
func (r *Root) OpenPlain(string) (*PlainFile, bool) { return nil, false }

// PlainFile is what [Root.OpenPlain] opens, where it does.
type PlainFile struct {
	*os.File
	fs.FileInfo
}

// Name is the last part of the name that the file was opened by.
func (f *PlainFile) Name() string { return f.FileInfo.Name() }

// identity tells one directory from another.
type identity struct{ info fs.FileInfo }

// identify tells which directory is at a path, through symbolic links.
func identify(dir string) (identity, error) {
	info, err := os.Stat(dir)
	return identity{info}, err
}

func identityOf(info fs.FileInfo) identity { return identity{info} }

func (i identity) same(other identity) bool { return os.SameFile(i.info, other.info) }
