package directory

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// file is an open file or directory.
type file struct {
	experimentalsys.UnimplementedFile
	f      *os.File
	d      *Directory
	isDir  bool
	append bool
	closed bool
	// number is the one that it had when it was opened, also when it is removed
	// meanwhile, where files do not show their own; else 0.
	number sys.Inode
	// entries are what is left of a directory that is being read; nil before.
	entries []experimentalsys.Dirent
}

var _ experimentalsys.File = (*file)(nil)

// Dev is the file's device.
func (f *file) Dev() (uint64, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Dev, errno
}

// Ino is the file's number.
func (f *file) Ino() (sys.Inode, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Ino, errno
}

// IsDir reports whether it is a directory.
func (f *file) IsDir() (bool, experimentalsys.Errno) { return f.isDir, 0 }

// IsAppend reports whether every write goes to the end.
func (f *file) IsAppend() bool { return f.append }

// SetAppend says whether every write goes to the end.
func (f *file) SetAppend(enable bool) experimentalsys.Errno {
	if f.isDir {
		return experimentalsys.EISDIR
	}
	if err := setAppend(f.f, enable); err != nil {
		return f.d.fail(err)
	}
	f.append = enable
	return 0
}

// Stat describes the file.
func (f *file) Stat() (sys.Stat_t, experimentalsys.Errno) {
	info, err := f.f.Stat()
	if err != nil {
		return sys.Stat_t{}, f.d.fail(err)
	}
	st := f.d.undated(info)
	if f.d.o.FixedTimes {
		st.Dev, st.Ino = theDevice, f.number
	}
	return st, 0
}

// Read reads from where the last Read or Seek ended.
func (f *file) Read(buf []byte) (int, experimentalsys.Errno) {
	if f.isDir {
		return 0, experimentalsys.EISDIR
	}
	if len(buf) == 0 {
		return 0, 0
	}
	return f.moved(f.f.Read(buf))
}

// Pread reads at an offset.
func (f *file) Pread(buf []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case f.isDir:
		return 0, experimentalsys.EISDIR
	case off < 0:
		return 0, experimentalsys.EINVAL
	}
	return f.moved(f.f.ReadAt(buf, off))
}

// Write writes where the last Write or Seek ended, or at the end.
func (f *file) Write(buf []byte) (int, experimentalsys.Errno) {
	if f.isDir {
		return 0, experimentalsys.EISDIR
	}
	return f.moved(f.f.Write(buf))
}

// Pwrite writes at an offset.
func (f *file) Pwrite(buf []byte, off int64) (int, experimentalsys.Errno) {
	switch {
	case f.isDir:
		return 0, experimentalsys.EISDIR
	case off < 0:
		return 0, experimentalsys.EINVAL
	}
	return f.moved(f.f.WriteAt(buf, off))
}

// moved is the outcome of reading or writing: the end of a file is no error here.
func (f *file) moved(n int, err error) (int, experimentalsys.Errno) {
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, f.d.fail(err)
}

// position is an offset in a file. The name keeps vet from taking Seek for that of
// [io.Seeker], which returns an error.
type position = int64

// Seek moves to an offset; a directory only to its beginning.
func (f *file) Seek(offset position, whence int) (position, experimentalsys.Errno) {
	if f.isDir {
		if offset != 0 || whence != io.SeekStart {
			return 0, experimentalsys.EISDIR
		}
		f.entries = nil
	}
	if whence < io.SeekStart || whence > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	at, err := f.f.Seek(offset, whence)
	return at, f.d.fail(err)
}

// Readdir reads the next n entries, sorted by name, or all that are left. The whole
// directory is read at once, at the first call.
func (f *file) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.isDir {
		return nil, experimentalsys.ENOTDIR
	}
	if f.entries == nil {
		read, err := f.f.ReadDir(-1)
		if err != nil {
			return nil, f.d.fail(err)
		}
		f.d.o.Table.entries += uint64(len(read))
		f.entries = make([]experimentalsys.Dirent, len(read))
		for i, e := range read {
			// A number would cost a look at each; guests look where they need it.
			f.entries[i] = experimentalsys.Dirent{Name: e.Name(), Type: e.Type() & fs.ModeType}
		}
		slices.SortFunc(f.entries, func(a, b experimentalsys.Dirent) int { return cmp.Compare(a.Name, b.Name) })
	}
	if n <= 0 || n > len(f.entries) {
		n = len(f.entries)
	}
	next := f.entries[:n:n]
	f.entries = f.entries[n:]
	return next, 0
}

// Truncate changes the size.
func (f *file) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.isDir:
		return experimentalsys.EISDIR
	case size < 0:
		return experimentalsys.EINVAL
	}
	return f.d.change(func() error { return f.f.Truncate(size) })
}

// Sync writes to the disk what is not there yet.
func (f *file) Sync() experimentalsys.Errno { return f.d.fail(f.f.Sync()) }

// Datasync is Sync.
func (f *file) Datasync() experimentalsys.Errno { return f.Sync() }

// Utimens sets the file's times.
func (f *file) Utimens(atim, mtim int64) experimentalsys.Errno {
	return f.d.change(func() error { return setTimes(f.f, atim, mtim) })
}

// Close closes the file. Closing again is no error.
func (f *file) Close() experimentalsys.Errno {
	if f.closed {
		return 0
	}
	f.closed = true
	f.d.o.Table.open--
	return f.d.fail(f.f.Close())
}
