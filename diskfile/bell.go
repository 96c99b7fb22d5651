package diskfile

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// Bell is a file that is written whenever something beside it has changed, by whichever
// process: its directory can be watched for that, where to watch all that may change
// would take a watch of the system for each. What is written says nothing.
type Bell struct {
	file   string
	of     string
	log    *slog.Logger
	warned sync.Once // that it cannot be written is told
}

// NewBell is the bell of a directory that is the user's alone. Nothing is made before it is
// rung. What it tells of, such as "sessions", is for the log.
func NewBell(dir, of string, log *slog.Logger) *Bell {
	return &Bell{file: filepath.Join(dir, "bell"), of: of, log: log}
}

// File is what is to be watched, by way of its directory.
func (b *Bell) File() string { return b.file }

// Ring writes the bell. What was done is done: that nobody hears of it is no failure, and
// is told once. What cannot be written in its place, such as what root has made or a link,
// is removed for a new one.
func (b *Bell) Ring() {
	err := b.write()
	if errors.Is(err, ErrNotRegular) || errors.Is(err, fs.ErrPermission) {
		if err = os.Remove(b.file); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = b.write()
		}
	}
	if err != nil {
		b.warned.Do(func() {
			b.log.Warn("other services are not told what becomes of "+b.of, "bell", b.file, "error", err)
		})
	}
}

func (b *Bell) write() error {
	if there, err := os.Lstat(b.file); err == nil && !there.Mode().IsRegular() {
		return ErrNotRegular // also a link, where NoFollow says nothing
	}
	f, _, err := OpenRegular(func(flag int) (*os.File, error) {
		return os.OpenFile(b.file, os.O_WRONLY|os.O_CREATE|NoFollow|flag, 0o600)
	})
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{'\n'}, 0) // one byte, the same one: a full disk has room for it
	return errors.Join(err, f.Close())
}
