package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plain is the directory as [Root.OpenPlain] needs it. It is opened at the first
// use: most roots of a service are idle.
type plain struct {
	dir  *os.File
	conn syscall.RawConn // keeps the descriptor from being closed meanwhile
}

func (p *plain) close() error {
	if p.dir == nil {
		return nil
	}
	return p.dir.Close()
}

// OpenPlain opens a regular file or a directory whose name leads through no
// symbolic link, with one system call where an [os.Root] needs one for each
// directory on the way. It is false for all else, also for what cannot be
// opened: [Root.Open] does that, or says why not.
func (r *Root) OpenPlain(name string) (*PlainFile, bool) {
	r.plainOnce.Do(r.openPlain)
	if r.plain.conn == nil {
		return nil, false
	}
	f := &PlainFile{fd: -1, name: name}
	err := r.plain.conn.Control(func(dir uintptr) {
		f.fd, _ = unix.Openat2(int(dir), name, &unix.OpenHow{
			Flags:   unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
		})
	})
	if err != nil || f.fd < 0 {
		return nil, false
	}
	kind := uint32(0)
	if unix.Fstat(f.fd, &f.stat) == nil {
		kind = f.stat.Mode & unix.S_IFMT
	}
	if kind != unix.S_IFREG && kind != unix.S_IFDIR {
		f.Close()
		return nil, false
	}
	return f, true
}

func (r *Root) openPlain() {
	dir, err := r.root.Open(".")
	if err != nil {
		return
	}
	conn, err := dir.SyscallConn()
	if err != nil {
		dir.Close()
		return
	}
	r.plain = plain{dir, conn}
}

// PlainFile is what [Root.OpenPlain] opened, and describes it. It is read without
// the poller, which regular files never need.
type PlainFile struct {
	fd   int
	name string
	stat unix.Stat_t
}

var (
	_ fs.FileInfo = (*PlainFile)(nil)
	_ io.ReaderAt = (*PlainFile)(nil)
)

// ReadAt implements [io.ReaderAt]. Where the file ends as it did when it was
// opened, that is not looked for once more.
func (f *PlainFile) ReadAt(p []byte, offset int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:], offset+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return n, &fs.PathError{Op: "read", Path: f.name, Err: err}
		}
		n += m
		if m == 0 || n < len(p) && offset+int64(n) == f.stat.Size {
			return n, io.EOF
		}
	}
	return n, nil
}

// Close closes the file.
func (f *PlainFile) Close() error { return unix.Close(f.fd) }

// Name is the last part of the name that the file was opened by.
func (f *PlainFile) Name() string { return path.Base(f.name) }

// Size is how many bytes the file had when it was opened.
func (f *PlainFile) Size() int64 { return f.stat.Size }

// IsDir reports whether it is a directory.
func (f *PlainFile) IsDir() bool { return f.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// Mode is the file's type and permissions.
func (f *PlainFile) Mode() fs.FileMode {
	mode := fs.FileMode(f.stat.Mode) & fs.ModePerm
	for bit, flag := range map[uint32]fs.FileMode{unix.S_ISUID: fs.ModeSetuid, unix.S_ISGID: fs.ModeSetgid, unix.S_ISVTX: fs.ModeSticky} {
		if f.stat.Mode&bit != 0 {
			mode |= flag
		}
	}
	if f.IsDir() {
		mode |= fs.ModeDir
	}
	return mode
}

// ModTime is when the content last changed.
func (f *PlainFile) ModTime() time.Time { return time.Unix(f.stat.Mtim.Unix()) }

// Sys is a *unix.Stat_t.
func (f *PlainFile) Sys() any { return &f.stat }

// identity tells one directory from another.
type identity struct{ device, inode uint64 }

// identify tells which directory is at a path, through symbolic links.
func identify(dir string) (identity, error) {
	var st unix.Stat_t
	for {
		err := unix.Stat(dir, &st)
		if !errors.Is(err, unix.EINTR) {
			return identity{st.Dev, st.Ino}, err
		}
	}
}

func identityOf(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{} // which no directory has
	}
	return identity{st.Dev, st.Ino}
}

func (i identity) same(other identity) bool { return i == other }
