package store

import (
	"os"
	"path/filepath"
)

// Bell is the file that is written whenever a session of the store is another one: it
// was taken or given up by a service, saved or forgotten. Its directory can be watched
// for that, where to watch each session's would take a watch of the system for each.
func (s *Store) Bell() string { return filepath.Join(s.dir, "bell") }

// Ring writes the bell. What was done is done: that nobody hears of it is no failure.
func (s *Store) Ring() {
	if info, err := os.Lstat(s.Bell()); err == nil && !info.Mode().IsRegular() {
		return // to open a pipe would wait for its reader
	}
	f, err := os.OpenFile(s.Bell(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteAt([]byte{'\n'}, 0) // one byte, the same one: a full disk has room for it
	_ = f.Close()
}
