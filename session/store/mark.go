package store

import (
	"io/fs"
	"os"
	"time"
)

// markAge is how long ago a binding was written whose mark can be trusted: file systems
// tell no two times apart that are close, and give the number of a file that was replaced
// to the next one. The coarsest tell two seconds.
const markAge = 3 * time.Second

// Mark tells a binding from those that it was before and becomes later, without reading it.
type Mark struct {
	info fs.FileInfo // nil for one that nothing is the same as
}

// Mark is the mark of the session's binding now. To be taken before the binding is read.
func (s *Store) Mark(id string) Mark {
	if CheckID(id) != nil {
		return Mark{}
	}
	info, err := os.Stat(s.session(id, "binding.json"))
	if err != nil || time.Since(info.ModTime()) < markAge {
		return Mark{}
	}
	return Mark{info}
}

// Same reports whether both are surely of the same binding.
func (m Mark) Same(other Mark) bool {
	return m.info != nil && other.info != nil && os.SameFile(m.info, other.info) &&
		m.info.ModTime().Equal(other.info.ModTime()) && m.info.Size() == other.info.Size()
}
