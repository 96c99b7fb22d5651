package workspace

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// The beginnings of the names of files that are being written. A file of the
// first kind is complete and locked for as long as its name stands, so that one
// without a lock is known to be left behind by a process that was killed. Where
// a file cannot be written before it has a name, it is of the second kind, and
// nobody can tell.
const (
	lockedPrefix = ".caisson-write-"
	namedPrefix  = ".caisson-writing-"
)

// temp is a new file beside the one that is meant, with its whole content.
type temp struct {
	parent *os.Root
	dir    *os.File // of an unnamed file; nil for a named one
	f      *os.File // open as long as it has a lock
	name   string   // "" while it has none
}

// temp writes a new file; after an error none is left. Where the system can do
// that it has no name yet: a process that is killed leaves nothing then.
func (w *writer) temp(mode fs.FileMode, finish func(*os.File) error) (*temp, error) {
	var t *temp
	err := errors.ErrUnsupported
	if !w.named {
		t, err = openUnnamed(w.parent, mode)
	}
	if errors.Is(err, errors.ErrUnsupported) {
		t, err = openNamed(w.parent, mode)
	}
	if err != nil {
		return nil, err
	}
	_, err = t.f.Write(w.data)
	if err == nil && finish != nil {
		err = finish(t.f)
	}
	if t.dir == nil {
		// Some systems rename no open file.
		err = errors.Join(err, t.f.Close())
	}
	if err != nil {
		t.discard()
		return nil, err
	}
	return t, nil
}

// openNamed makes an empty file with a name of its own.
func openNamed(parent *os.Root, mode fs.FileMode) (*temp, error) {
	name := tempName(namedPrefix)
	f, err := parent.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return nil, err
	}
	return &temp{parent: parent, f: f, name: name}, nil
}

func tempName(prefix string) string { return prefix + rand.Text() }

// link gives the file the name, which must be free.
func (t *temp) link(name string) error {
	if t.dir != nil {
		return linkUnnamed(t, name)
	}
	return t.parent.Link(t.name, name)
}

// rename puts the file in the place of whatever has the name.
func (t *temp) rename(name string) error {
	if t.name == "" {
		if err := lock(t.f); err != nil {
			return err
		}
		own := tempName(lockedPrefix)
		if err := linkUnnamed(t, own); err != nil {
			return err
		}
		t.name = own
	}
	if err := t.parent.Rename(t.name, name); err != nil {
		return err
	}
	t.name = ""
	return nil
}

// nameless reports whether a file without a name did not get one: there is no
// /proc, or the system allows no such link.
func (t *temp) nameless() bool { return t.dir != nil && t.name == "" }

// discard lets go of the file, and of its own name if it still has that.
func (t *temp) discard() {
	if t.name != "" {
		_ = t.parent.Remove(t.name) // what it was for has failed already, and says so
	}
	_ = t.f.Close() // written and complete, or of no use
	if t.dir != nil {
		_ = t.dir.Close()
	}
}

const (
	// maxSwept is how many directories are remembered as swept, and maxEntries
	// how many entries of one are looked at: leftovers are rare and small, and no
	// reason to wait.
	maxSwept   = 1024
	maxEntries = 10_000
)

// sweepOnce removes, before the first write into a directory, what writers that
// were killed have left there.
func (r *Root) sweepOnce(name string, dir *os.Root) {
	r.sweptMu.Lock()
	_, known := r.swept[name]
	if len(r.swept) >= maxSwept {
		clear(r.swept)
	}
	if r.swept == nil {
		r.swept = make(map[string]struct{})
	}
	r.swept[name] = struct{}{}
	r.sweptMu.Unlock()
	if !known {
		sweep(dir)
	}
}
