package workspace

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

const (
	// removeTries is how often what resists removal is opened and flattened: each time
	// it is less.
	removeTries = 8
	// removeDepth is how deep a tree is left before it is removed: a removal has as many
	// directories open.
	removeDepth = 100
	// removeEntries is how many entries of one directory are looked at, each time.
	removeEntries = 100_000
)

// Remove removes the file or directory at an absolute path, with what is in it, as
// [RemoveAll] does. The path may be missing.
func Remove(dir string) error {
	parent, err := os.OpenRoot(filepath.Dir(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(RemoveAll(parent, filepath.Base(dir)), parent.Close())
}

// RemoveAll removes what is called name in root, and what is in it. Commands may
// have left directories that not even their owner may write, as those of module caches
// are, and more of them in each other than there may be files open. Links are not
// followed.
func RemoveAll(root *os.Root, name string) error {
	for try := 1; ; try++ {
		err := root.RemoveAll(name)
		if err == nil || try == removeTries {
			return err
		}
		if err := flatten(root, name); err != nil {
			return err
		}
	}
}

// flatten gives the owner of the directories below name their rights back, and moves
// those that are deep in it up into it.
func flatten(root *os.Root, name string) error {
	deep := []string{name}
	for len(deep) > 0 {
		dir := deep[len(deep)-1]
		deep = deep[:len(deep)-1]
		if err := unlock(root, dir, 0, func(dir string) error {
			up := path.Join(name, strings.ToLower(rand.Text()))
			deep = append(deep, up)
			return root.Rename(dir, up)
		}); err != nil {
			return err
		}
	}
	return nil
}

// unlock gives the owner of the directories below dir their rights back, and has those
// moved that are too deep.
func unlock(root *os.Root, dir string, depth int, move func(string) error) error {
	if err := root.Chmod(dir, 0o700); err != nil {
		return err
	}
	if depth > removeDepth {
		return move(dir)
	}
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	entries, err := f.ReadDir(removeEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	err = errors.Join(err, f.Close())
	for _, e := range entries {
		if e.IsDir() {
			err = errors.Join(err, unlock(root, path.Join(dir, e.Name()), depth+1, move))
		}
	}
	return err
}
