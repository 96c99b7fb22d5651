// Package directory is a directory of the host as a WebAssembly guest sees it: an
// [experimentalsys.FS] written on [os.Root], because the mounts that the engine
// brings follow symbolic links out of what was mounted.
//
// No path, no link and no swap of one for the other while a call runs leads out of
// the directory. What is neither a file nor a directory nor a link is not opened:
// a pipe could hold the guest for ever. Nothing that knows modules, fuel or a
// protocol belongs here.
package directory

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// Options say how a guest may use a directory.
type Options struct {
	// ReadOnly answers EROFS to whatever would change something.
	ReadOnly bool
	// FixedTimes shows Epoch as every time of every file, one link for each, no size of
	// directories, and files numbered as the guest meets them: what differs from one
	// run to the next although the contents do not.
	FixedTimes bool
	// Epoch is what FixedTimes shows, in nanoseconds since 1970.
	Epoch int64
	// Table is shared by all directories of one guest. Required.
	Table *Table
}

// Directory is one mounted directory. It is for one guest, which has one thread.
type Directory struct {
	experimentalsys.UnimplementedFS
	root *os.Root
	o    Options
}

var _ experimentalsys.FS = (*Directory)(nil)

// New shows root to a guest. The caller closes root, after the guest's end.
func New(root *os.Root, o Options) *Directory { return &Directory{root: root, o: o} }

// Permissions of what a guest makes, before the umask: WASI has none, so they are
// those that a shell would give.
const (
	fileMode = 0o666
	dirMode  = 0o777
)

// local turns a path of the engine into a name for an [os.Root]. A trailing slash
// says that the path must be a directory.
func local(p string) (name string, mustBeDir bool) {
	trimmed := strings.Trim(p, "/")
	if trimmed == "" {
		return ".", true
	}
	return path.Clean(trimmed), strings.HasSuffix(p, "/")
}

// local is the name for our root, and notes how long the path is.
func (d *Directory) local(p string) (name string, mustBeDir bool) {
	d.o.Table.longest = max(d.o.Table.longest, len(p))
	return local(p)
}

// OpenFile opens a regular file or a directory, and makes a file where the flags
// say so. The permissions are our own.
func (d *Directory) OpenFile(p string, flag experimentalsys.Oflag, _ fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	name, mustBeDir := d.local(p)
	mustBeDir = mustBeDir || flag&experimentalsys.O_DIRECTORY != 0
	how, writes := openFlags(flag, mustBeDir)
	if writes && d.o.ReadOnly {
		return nil, d.readOnly(name, flag)
	}
	if !d.o.Table.room() {
		return nil, d.fail(errTooManyFiles)
	}
	if flag&experimentalsys.O_NOFOLLOW != 0 {
		// Where it is swapped for a link meanwhile, the link leads nowhere else
		// than the guest may go.
		if info, err := d.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, experimentalsys.ELOOP
		}
	}
	if mustBeDir && flag&experimentalsys.O_CREAT != 0 {
		return nil, experimentalsys.EINVAL
	}
	// To open a device may already do something, and to open a pipe wakes whoever
	// waits for it; one that is swapped in meanwhile is closed at once.
	if info, err := d.root.Stat(name); err == nil && !mustBeDir && !info.IsDir() && !info.Mode().IsRegular() {
		return nil, experimentalsys.EACCES
	}
	f, err := d.root.OpenFile(name, how|nonblock, fileMode)
	if err != nil {
		return nil, d.fail(err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, d.fail(err)
	}
	var refused experimentalsys.Errno
	switch {
	case mustBeDir && !info.IsDir():
		refused = experimentalsys.ENOTDIR
	case info.IsDir() && writes:
		refused = experimentalsys.EISDIR
	case !info.IsDir() && !info.Mode().IsRegular():
		refused = experimentalsys.EACCES
	}
	if refused == 0 && flag&experimentalsys.O_APPEND != 0 {
		if err := setAppend(f, true); err != nil {
			refused = d.fail(err)
		}
	}
	if refused != 0 {
		f.Close()
		return nil, refused
	}
	d.o.Table.open++
	opened := &file{f: f, d: d, isDir: info.IsDir(), append: flag&experimentalsys.O_APPEND != 0}
	if d.o.FixedTimes {
		opened.number = d.describe(info).Ino
	}
	return opened, 0
}

// readOnly is why a file is not opened for writing in a directory that is
// read-only: EROFS, unless there is a better reason.
func (d *Directory) readOnly(name string, flag experimentalsys.Oflag) experimentalsys.Errno {
	info, err := d.root.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return experimentalsys.EISDIR
	case err == nil && flag&experimentalsys.O_CREAT != 0 && flag&experimentalsys.O_EXCL != 0:
		return experimentalsys.EEXIST
	case err != nil && flag&experimentalsys.O_CREAT == 0:
		return d.fail(err)
	}
	return experimentalsys.EROFS
}

// openFlags are flag as package os writes them, and whether they change something.
// Appending is no flag of the file: it can be turned on and off.
func openFlags(flag experimentalsys.Oflag, dir bool) (how int, writes bool) {
	const access = experimentalsys.O_RDWR | experimentalsys.O_WRONLY
	if dir {
		return os.O_RDONLY, flag&(experimentalsys.O_CREAT|experimentalsys.O_TRUNC) != 0
	}
	switch flag & access {
	case experimentalsys.O_RDWR:
		how, writes = os.O_RDWR, true
	case experimentalsys.O_WRONLY:
		how, writes = os.O_WRONLY, true
	}
	for _, f := range []struct {
		from   experimentalsys.Oflag
		to     int
		writes bool
	}{
		{experimentalsys.O_CREAT, os.O_CREATE, true},
		{experimentalsys.O_EXCL, os.O_EXCL, false},
		{experimentalsys.O_TRUNC, os.O_TRUNC, true},
		{experimentalsys.O_SYNC | experimentalsys.O_DSYNC | experimentalsys.O_RSYNC, os.O_SYNC, false},
	} {
		if flag&f.from != 0 {
			how |= f.to
			writes = writes || f.writes
		}
	}
	return how, writes
}

// Lstat describes an entry; a link is described itself.
func (d *Directory) Lstat(p string) (sys.Stat_t, experimentalsys.Errno) {
	return d.stat(p, d.root.Lstat)
}

// Stat describes what a path leads to.
func (d *Directory) Stat(p string) (sys.Stat_t, experimentalsys.Errno) {
	return d.stat(p, d.root.Stat)
}

func (d *Directory) stat(p string, stat func(string) (fs.FileInfo, error)) (sys.Stat_t, experimentalsys.Errno) {
	name, mustBeDir := d.local(p)
	if mustBeDir {
		stat = d.root.Stat // the slash follows a link
	}
	info, err := stat(name)
	if err != nil {
		return sys.Stat_t{}, d.fail(err)
	}
	if mustBeDir && !info.IsDir() {
		return sys.Stat_t{}, experimentalsys.ENOTDIR
	}
	return d.describe(info), 0
}

// describe is what a guest sees of what is at a path.
func (d *Directory) describe(info fs.FileInfo) sys.Stat_t {
	st := d.undated(info)
	if d.o.FixedTimes {
		st.Dev, st.Ino = theDevice, d.o.Table.number(st)
	}
	return st
}

// theDevice is the device of all files that do not show their own.
const theDevice = 1

// undated is what a guest sees of a file, but for its numbers.
func (d *Directory) undated(info fs.FileInfo) sys.Stat_t {
	st := sys.NewStat_t(info)
	if d.o.FixedTimes {
		st.Atim, st.Mtim, st.Ctim, st.Nlink = d.o.Epoch, d.o.Epoch, d.o.Epoch, 1
		if info.IsDir() {
			st.Size = 0
		}
	}
	return st
}

// removed is told of what was at a name until now.
func (d *Directory) removed(info fs.FileInfo) {
	if !d.o.FixedTimes {
		return
	}
	if st := sys.NewStat_t(info); info.IsDir() || st.Nlink <= 1 {
		d.o.Table.forget(st)
	}
}

// change runs an operation that changes something.
func (d *Directory) change(do func() error) experimentalsys.Errno {
	if d.o.ReadOnly {
		return experimentalsys.EROFS
	}
	return d.fail(do())
}

// Mkdir makes a directory; the permissions are our own.
func (d *Directory) Mkdir(p string, _ fs.FileMode) experimentalsys.Errno {
	name, _ := d.local(p)
	return d.change(func() error { return d.root.Mkdir(name, dirMode) })
}

// Chmod changes a file's permissions.
func (d *Directory) Chmod(p string, perm fs.FileMode) experimentalsys.Errno {
	name, _ := d.local(p)
	return d.change(func() error { return d.root.Chmod(name, perm&fs.ModePerm) })
}

// Rename moves a file or a directory.
func (d *Directory) Rename(from, to string) experimentalsys.Errno {
	old, oldIsDir := d.local(from)
	name, newIsDir := d.local(to)
	return d.change(func() error {
		if oldIsDir || newIsDir {
			if info, err := d.root.Lstat(old); err != nil {
				return err
			} else if !info.IsDir() {
				return experimentalsys.ENOTDIR
			}
		}
		if old == "." || name == "." {
			return experimentalsys.EINVAL
		}
		replaced, missing := d.root.Lstat(name)
		err := d.root.Rename(old, name)
		if err == nil && missing == nil && old != name {
			d.removed(replaced)
		}
		if err == nil || !errors.Is(err, fs.ErrExist) {
			return err
		}
		// Package os says no more than that something is there.
		if info, statErr := d.root.Lstat(old); statErr == nil && !info.IsDir() {
			return experimentalsys.EISDIR
		}
		return experimentalsys.ENOTEMPTY
	})
}

// Rmdir removes an empty directory.
func (d *Directory) Rmdir(p string) experimentalsys.Errno {
	name, _ := d.local(p)
	return d.change(func() error {
		info, err := d.root.Lstat(name)
		switch {
		case err != nil:
			return err
		case !info.IsDir():
			return experimentalsys.ENOTDIR
		case name == ".":
			return experimentalsys.EINVAL
		}
		return d.remove(name, info)
	})
}

// Unlink removes what is no directory.
func (d *Directory) Unlink(p string) experimentalsys.Errno {
	name, mustBeDir := d.local(p)
	return d.change(func() error {
		info, err := d.root.Lstat(name)
		switch {
		case err != nil:
			return err
		case info.IsDir():
			return experimentalsys.EISDIR
		case mustBeDir:
			return experimentalsys.ENOTDIR
		}
		return d.remove(name, info)
	})
}

// remove removes what is described.
func (d *Directory) remove(name string, info fs.FileInfo) error {
	err := d.root.Remove(name)
	if err == nil {
		d.removed(info)
	}
	return err
}

// Link makes a second name of a file in the same directory.
func (d *Directory) Link(oldPath, newPath string) experimentalsys.Errno {
	old, _ := d.local(oldPath)
	name, newIsDir := d.local(newPath)
	return d.change(func() error {
		if newIsDir {
			return experimentalsys.ENOENT
		}
		return d.root.Link(old, name)
	})
}

// Symlink makes a link. One that would lead out of the directory is refused: it
// would lead nowhere for the guest, and lead others who come by it astray.
func (d *Directory) Symlink(target, linkPath string) experimentalsys.Errno {
	name, mustBeDir := d.local(linkPath)
	target = strings.Clone(target) // the engine lends the guest's own memory
	return d.change(func() error {
		switch {
		case mustBeDir:
			return experimentalsys.ENOENT
		case path.IsAbs(target) || !fs.ValidPath(path.Join(path.Dir(name), target)):
			return experimentalsys.EPERM
		}
		return d.root.Symlink(target, name)
	})
}

// Readlink is where a link leads, as it is written there.
func (d *Directory) Readlink(p string) (string, experimentalsys.Errno) {
	name, _ := d.local(p)
	info, err := d.root.Lstat(name)
	if err != nil {
		return "", d.fail(err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return "", experimentalsys.EINVAL
	}
	target, err := d.root.Readlink(name)
	return target, d.fail(err)
}

// Utimens sets the times of what a path leads to.
func (d *Directory) Utimens(p string, atim, mtim int64) experimentalsys.Errno {
	name, _ := d.local(p)
	return d.change(func() error { return d.root.Chtimes(name, instant(atim), instant(mtim)) })
}

// instant is a time as package os takes it, the zero time for one that is to stay.
func instant(nanos int64) time.Time {
	if nanos == experimentalsys.UTIME_OMIT {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}
