package eventlog

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/caisson-dev/caisson/diskfile"
)

// file is the file that lines are appended to. It is one goroutine's.
type file struct {
	path string
	max  int64
	f    *os.File // nil after a failure
	size int64
	torn bool // it may end within a line
}

func openFile(path string, most int64) (*file, error) {
	l := &file{path: path, max: most}
	return l, l.open()
}

// open opens what is at the path now.
func (l *file) open() error {
	f, info, err := diskfile.OpenRegular(func(flag int) (*os.File, error) {
		return os.OpenFile(l.path, os.O_RDWR|os.O_APPEND|os.O_CREATE|diskfile.NoFollow|flag, 0o600)
	})
	if err != nil {
		if about, e := os.Lstat(l.path); e == nil && about.Mode()&os.ModeSymlink != 0 {
			return errors.New("it is a symbolic link, and must be the file itself")
		}
		return err
	}
	if !diskfile.OwnedByUs(info) {
		return errors.Join(errors.New("it belongs to another user"), f.Close())
	}
	l.f, l.size = f, info.Size()
	return l.mend()
}

// mend ends a line that a service which was killed had begun.
func (l *file) mend() error {
	if l.torn = false; l.size == 0 {
		return nil
	}
	last := make([]byte, 1)
	if _, err := l.f.ReadAt(last, l.size-1); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	l.torn = last[0] != '\n'
	return nil
}

// write appends whole lines, after moving a file aside that is large enough. A line
// that could only be written in part is ended before the next one.
func (l *file) write(lines []byte) error {
	if l.moved() {
		if err := l.close(); err != nil {
			return err
		}
	}
	if l.f == nil {
		if err := l.open(); err != nil {
			return err
		}
	}
	if l.size > 0 && l.size+int64(len(lines)) > l.max {
		if err := l.rotate(); err != nil {
			return err
		}
	}
	if l.torn {
		lines = append([]byte{'\n'}, lines...)
	}
	n, err := l.f.Write(lines)
	l.size += int64(n)
	switch {
	case err != nil && n > 0:
		l.torn = true
	case err == nil:
		l.torn = false
		// Another service may append to the same file.
		if info, serr := l.f.Stat(); serr == nil {
			l.size = info.Size()
		}
	}
	return err
}

// moved reports whether somebody moved the file aside or removed it, as programs do that
// keep logs small: what is written to it would not be found.
func (l *file) moved() bool {
	if l.f == nil {
		return false
	}
	mine, err := l.f.Stat()
	if err != nil {
		return false
	}
	l.size = mine.Size() // another service may have appended to it
	now, err := os.Lstat(l.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(mine, now)
}

// rotate moves the file to its name and ".1", unless another service has done that,
// and begins a new one. While another one is doing it, lines still go to the old one:
// two that moved it at once would move the new one over it.
func (l *file) rotate() error {
	if !mover(l.f) {
		return nil
	}
	mine, err := l.f.Stat()
	if err != nil {
		return err
	}
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(mine, now) {
		if !diskfile.MovesOpen {
			err = l.close()
		}
		if err = errors.Join(err, os.Rename(l.path, l.path+".1")); err != nil {
			return fmt.Errorf("it cannot be moved aside: %w", err)
		}
	}
	return errors.Join(l.close(), l.open())
}

// mover takes the file's lock until it is closed, and reports false when another
// service has it. Where files have no locks nobody has it; where what another service has
// open stays in its place none is needed.
func mover(f *os.File) bool {
	if !diskfile.MovesOpen {
		return true
	}
	free, err := diskfile.TryLock(f)
	return free || err != nil
}

func (l *file) close() error {
	if l.f == nil {
		return nil
	}
	f := l.f
	l.f = nil
	return f.Close()
}
