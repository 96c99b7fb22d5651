package workspace

import "io/fs"

// Entry is one name in a directory, with what it is without following links.
type Entry struct {
	Name string
	Type fs.FileMode // type bits only
}

// OpenDir opens a directory for walking.
func (r *Root) OpenDir(name string) (*Dir, error) {
	f, info, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		f.Close()
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotDirectory}
	}
	return r.newDir(f, name)
}

func entries(list []fs.DirEntry) []Entry {
	out := make([]Entry, len(list))
	for i, e := range list {
		out[i] = Entry{Name: e.Name(), Type: e.Type()}
	}
	return out
}
