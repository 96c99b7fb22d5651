package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Bell is the file that is written whenever a session of the store is another one: it
// was taken or given up by a service, saved or forgotten. Its directory can be watched
// for that, where to watch each session's would take a watch of the system for each.
func (s *Store) Bell() string { return filepath.Join(s.dir, "bell") }

// errNoBell is what stands in the place of the bell and is no file.
var errNoBell = errors.New("it is not a regular file")

// Ring writes the bell. What was done is done: that nobody hears of it is no failure, and
// is told once. What cannot be written in its place, such as what root has made or a link,
// is removed for a new one: the directory is the user's alone.
func (s *Store) Ring() {
	err := ring(s.Bell())
	if errors.Is(err, errNoBell) || errors.Is(err, fs.ErrPermission) {
		if err = os.Remove(s.Bell()); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = ring(s.Bell())
		}
	}
	if err != nil {
		s.mute.Do(func() {
			s.log.Warn("other services are not told what becomes of sessions", "bell", s.Bell(), "error", err)
		})
	}
}

func ring(bell string) error {
	f, err := os.OpenFile(bell, os.O_WRONLY|os.O_CREATE|bellFlags, 0o600)
	if err != nil {
		if there, e := os.Lstat(bell); e == nil && !there.Mode().IsRegular() {
			return errNoBell
		}
		return err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errNoBell
	}
	if err == nil {
		_, err = f.WriteAt([]byte{'\n'}, 0) // one byte, the same one: a full disk has room for it
	}
	return errors.Join(err, f.Close())
}
