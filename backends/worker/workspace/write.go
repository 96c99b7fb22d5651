package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"syscall"
)

// ErrChanged is what Write answers when the file is no longer the one that the
// caller has seen.
var ErrChanged = errors.New("the file was changed by somebody else meanwhile")

// WriteOptions says how Write treats what is there already. The zero value
// replaces it.
type WriteOptions struct {
	// CreateOnly fails with [fs.ErrExist] when there is something.
	CreateOnly bool
	// Unless nil, Seen is what the file was when the caller read it: a
	// different size, time or file fails with [ErrChanged].
	Seen fs.FileInfo
}

// Write makes a file hold exactly data, atomically: others see the old content
// or the new one, and after an error the old one. Missing directories above it
// are made, and taken away again after an error. An existing file keeps its mode, owner and attributes; a symbolic
// link is followed and stays. Not even root's rights overwrite a file that is
// read-only for the writer.
//
// Where the file's owner cannot be kept, or its directory takes no new file, it
// is rewritten in place instead, after room for it has been set aside: the
// owner matters more there than atomicity.
//
// Nothing is synced to the disk: what tools write is work in progress, which a
// power cut may take as it may take what an editor or git wrote just before.
func (r *Root) Write(name string, data []byte, o WriteOptions) (_ fs.FileInfo, err error) {
	target, err := r.writeTarget(name, o)
	if err != nil {
		return nil, err
	}
	dir, base := path.Split(target)
	dir = path.Clean(dir)
	parent, err := r.openRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		made := r.missing(dir)
		defer func() {
			if err != nil {
				r.unmake(made)
			}
		}()
		if err := r.mkdirAll(dir); err != nil {
			return nil, err
		}
		parent, err = r.openRoot(dir)
	}
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	r.sweepOnce(dir, parent)

	w := writer{parent: parent, base: base, data: data, options: o}
	if err := w.write(); err != nil {
		return nil, rename(err, name)
	}
	return parent.Lstat(base)
}

// missing lists the directories that are not there on the way to dir, the deepest first.
func (r *Root) missing(dir string) (names []string) {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := r.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		names = append(names, dir)
	}
	return names
}

// unmake takes directories away, the deepest first, as far as nobody has put anything
// into them meanwhile.
func (r *Root) unmake(names []string) {
	for _, name := range names {
		if r.root.Remove(name) != nil {
			return
		}
	}
}

// writeTarget is the name of the file that writing to name changes.
func (r *Root) writeTarget(name string, o WriteOptions) (string, error) {
	info, err := r.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil
	case err != nil:
		return "", err
	case o.CreateOnly:
		return "", &fs.PathError{Op: "create", Path: name, Err: fs.ErrExist}
	case info.Mode()&fs.ModeSymlink == 0:
		return name, nil
	}
	// A link that os.Root would refuse must be refused before anything is made.
	if _, err := r.Stat(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return r.resolve(name, true)
}

// writer writes one file in its open directory.
type writer struct {
	parent  *os.Root
	base    string
	data    []byte
	options WriteOptions
	named   bool // files without a name are of no use here
}

func (w *writer) write() error {
	info, err := w.parent.Lstat(w.base)
	if errors.Is(err, fs.ErrNotExist) {
		if w.options.Seen != nil {
			return ErrChanged
		}
		return w.create()
	}
	switch {
	case err != nil:
		return err
	case w.options.CreateOnly:
		return &fs.PathError{Op: "create", Path: w.base, Err: fs.ErrExist}
	case info.IsDir():
		return &fs.PathError{Op: "write", Path: w.base, Err: syscall.EISDIR}
	case info.Mode()&fs.ModeSymlink != 0:
		// It was resolved a moment ago.
		return ErrChanged
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "write", Path: w.base, Err: ErrSpecial}
	case w.options.Seen != nil && !same(w.options.Seen, info):
		return ErrChanged
	}
	return w.replace(info)
}

// create writes a file that is not there yet.
func (w *writer) create() error {
	t, err := w.temp(0o666, nil)
	if err != nil {
		return err
	}
	defer t.discard()
	// A link, other than a rename, never replaces what came into being meanwhile.
	err = t.link(w.base)
	if err == nil || w.options.CreateOnly && errors.Is(err, fs.ErrExist) {
		return err
	}
	if !w.options.CreateOnly {
		err = t.rename(w.base)
	}
	switch {
	case err == nil:
		return nil
	case t.nameless():
		w.named = true
		return w.create()
	case w.options.CreateOnly:
		return w.createExclusive() // a file system without hard links
	}
	return err
}

// createExclusive claims the name first and writes then.
func (w *writer) createExclusive() error {
	f, err := w.parent.OpenFile(w.base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(w.data)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, w.parent.Remove(w.base))
	}
	return nil
}

// replace puts a new file in the place of the old one.
func (w *writer) replace(info fs.FileInfo) error {
	// Opening tells whether the file may be written at all: a rename asks the
	// directory only.
	old, err := w.parent.OpenFile(w.base, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil && !busy(err) {
		return err
	}
	if old != nil {
		defer old.Close()
		if now, err := old.Stat(); err != nil || !os.SameFile(now, info) {
			return errors.Join(ErrChanged, err)
		}
	}
	t, err := w.temp(0o600, func(f *os.File) error { return keepAttributes(f, old, info) })
	if err == nil {
		defer t.discard()
		closeBeforeRename(old)
		err = w.inTurn(func() error { return t.rename(w.base) })
		if err == nil || errors.Is(err, ErrChanged) {
			return err
		}
		if t.nameless() {
			w.named = true
			return w.replace(info)
		}
	}
	if old == nil || !inPlaceHelps(err) {
		return err
	}
	return w.inTurn(func() error { return w.inPlace(old, info.Size()) })
}

// inTurn puts the data in the place of a file that is still what the caller has seen. Two
// writers that both looked before either of them has written would lose what one wrote.
func (w *writer) inTurn(put func() error) error {
	defer turn(w.parent)()
	if w.options.Seen != nil {
		if now, err := w.parent.Lstat(w.base); err != nil || !same(w.options.Seen, now) {
			return errors.Join(ErrChanged, err)
		}
	}
	return put()
}

// inPlace overwrites the open file. Room is set aside first, so that a full
// disk is found out while the old content still stands.
func (w *writer) inPlace(f *os.File, size int64) error {
	if int64(len(w.data)) > size {
		if err := allocate(f, int64(len(w.data))); err != nil {
			return errors.Join(err, f.Truncate(size))
		}
	}
	if _, err := f.WriteAt(w.data, 0); err != nil {
		return fmt.Errorf("the file could be rewritten in part only: %w", err)
	}
	return f.Truncate(int64(len(w.data)))
}

// same reports whether a file is still what it was.
func same(a, b fs.FileInfo) bool {
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// rename gives an error the name that the caller knows.
func rename(err error, name string) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return &fs.PathError{Op: "write", Path: name, Err: pathErr.Err}
	}
	var linkErr *os.LinkError
	if errors.As(err, &linkErr) {
		return &fs.PathError{Op: "write", Path: name, Err: linkErr.Err}
	}
	return err
}
