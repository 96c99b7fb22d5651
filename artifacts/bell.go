package artifacts

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Bell is the file that is written whenever the list of artifacts is another one, by
// whichever process. Its directory can be watched for that.
func (s *Store) Bell() string { return filepath.Join(s.dir, bellFile) }

// errNoBell is what stands in the place of the bell and is no file.
var errNoBell = errors.New("it is not a regular file")

// ring writes the bell. What was done is done: that nobody hears of it is no failure, and
// is told once. What cannot be written in its place, such as what root has made or a link,
// is removed for a new one: the directory is the user's alone.
func (s *Store) ring() {
	err := s.writeBell()
	if errors.Is(err, errNoBell) || errors.Is(err, fs.ErrPermission) {
		if err = s.root.Remove(bellFile); err == nil || errors.Is(err, fs.ErrNotExist) {
			err = s.writeBell()
		}
	}
	if err != nil {
		s.mute.Do(func() {
			s.log.Warn("other services are not told what becomes of artifacts", "bell", s.Bell(), "error", err)
		})
	}
}

func (s *Store) writeBell() error {
	if there, err := s.root.Lstat(bellFile); err == nil && !there.Mode().IsRegular() {
		return errNoBell
	}
	f, err := s.root.OpenFile(bellFile, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o600) // a pipe would block
	if err != nil {
		return err
	}
	// A link that has been put there meanwhile was followed.
	opened, err := f.Stat()
	if err == nil {
		if there, e := s.root.Lstat(bellFile); e != nil || !there.Mode().IsRegular() || !os.SameFile(opened, there) {
			err = errNoBell
		}
	}
	if err == nil {
		_, err = f.WriteAt([]byte{'\n'}, 0) // one byte, the same one: a full disk has room for it
	}
	return errors.Join(err, f.Close())
}
