package artifacts

import (
	"os"
	"path/filepath"
)

// Bell is the file that is written whenever the list of artifacts is another one, by
// whichever process. Its directory can be watched for that.
func (s *Store) Bell() string { return filepath.Join(s.dir, bellFile) }

// ring writes the bell. What was done is done: that nobody hears of it is no failure.
func (s *Store) ring() {
	if info, err := s.root.Lstat(bellFile); err == nil && !info.Mode().IsRegular() {
		return // to open a pipe would wait for its reader
	}
	f, err := s.root.OpenFile(bellFile, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteAt([]byte{'\n'}, 0) // one byte, the same one: a full disk has room for it
	_ = f.Close()
}
