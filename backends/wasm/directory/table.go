package directory

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"
)

// Table counts what one guest has open, and keeps the error numbers of WASI that
// the engine has no word for, and the numbers by which a guest knows files whose own
// it must not see. The zero value lets nothing be opened.
type Table struct {
	// Max is how many files and directories may be open at once.
	Max int

	open    int
	precise uint32
	entries uint64
	longest int
	numbers map[identity]sys.Inode
	last    sys.Inode // of numbers
}

// identity is which file of the host it is.
type identity struct{ device, number uint64 }

func identify(st sys.Stat_t) identity { return identity{st.Dev, st.Ino} }

// number is the number of a file among those that the guest has met. 0 is that of all
// where the system tells none.
func (t *Table) number(st sys.Stat_t) sys.Inode {
	if st.Ino == 0 {
		return 0
	}
	n, known := t.numbers[identify(st)]
	if !known {
		if t.numbers == nil {
			t.numbers = make(map[identity]sys.Inode)
		}
		t.last++
		n = t.last
		t.numbers[identify(st)] = n
	}
	return n
}

// forget lets go of the number of a file that is removed: some systems give its own to
// the next one that is made.
func (t *Table) forget(st sys.Stat_t) { delete(t.numbers, identify(st)) }

func (t *Table) room() bool { return t.open < t.Max }

// Precise returns the number of WASI for the last operation that failed with EIO,
// where it has one, and forgets it; 0 for none.
func (t *Table) Precise() uint32 {
	p := t.precise
	t.precise = 0
	return p
}

// Entries returns how many entries of directories were read since it was last asked:
// a guest asks for a few, and all of them are read.
func (t *Table) Entries() uint64 {
	n := t.entries
	t.entries = 0
	return n
}

// Longest returns how long the longest path was, in bytes, that was looked up since it
// was last asked. It begins at the root of its directory, also where the guest gave no
// more than the end of it: to what an open directory holds every step is taken again.
func (t *Table) Longest() int {
	n := t.longest
	t.longest = 0
	return n
}

// errTooManyFiles is a guest with too many open files.
var errTooManyFiles = errors.New("too many open files")

// Error numbers of WASI preview 1 that the engine turns into EIO.
const (
	wasiBusy  = 10
	wasiDquot = 19
	wasiFbig  = 22
	wasiMfile = 33
	wasiMlink = 34
	wasiNospc = 51
	wasiTxt   = 74
	wasiXdev  = 75
)

// fail is err as the engine says it, and, where it has no word, as WASI does.
func (d *Directory) fail(err error) experimentalsys.Errno {
	if err == nil {
		return 0
	}
	errno, precise := errnoOf(err)
	d.o.Table.precise = precise
	return errno
}

func errnoOf(err error) (errno experimentalsys.Errno, precise uint32) {
	if e, ok := errors.AsType[experimentalsys.Errno](err); ok {
		return e, 0
	}
	if errors.Is(err, errTooManyFiles) {
		return experimentalsys.EIO, wasiMfile
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		if precise := preciseOf(e); precise != 0 {
			return experimentalsys.EIO, precise
		}
		return experimentalsys.UnwrapOSError(e), 0
	}
	switch {
	case escapes(err):
		return experimentalsys.EPERM, 0
	case errors.Is(err, fs.ErrNotExist):
		return experimentalsys.ENOENT, 0
	case errors.Is(err, fs.ErrExist):
		return experimentalsys.EEXIST, 0
	case errors.Is(err, fs.ErrPermission):
		return experimentalsys.EPERM, 0
	case errors.Is(err, fs.ErrInvalid):
		return experimentalsys.EINVAL, 0
	case errors.Is(err, fs.ErrClosed):
		return experimentalsys.EBADF, 0
	}
	return experimentalsys.EIO, 0
}

// escapes reports whether an [os.Root] refused to leave its directory, which is an
// error without a name.
func escapes(err error) bool {
	cause := err
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		cause = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		cause = e.Err
	}
	return strings.Contains(cause.Error(), "path escapes from parent")
}
