package main

import (
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// overlay is a file system: what was written, over what there is.
type overlay struct {
	root  string
	lower fs.FS // nil for nothing

	exports exports

	mu    sync.Mutex
	upper map[string]*file // by name relative to the root
	size  int
}

type file struct {
	content []byte
	changed time.Time
}

// maxBytes is how much may be written in one session: memory is not for more.
const maxBytes = 64 << 20

// name is a path of a tool relative to the root, "." for the root itself.
func (o *overlay) name(p string) (string, error) {
	if !path.IsAbs(p) {
		p = path.Join(o.root, p)
	}
	name, inside := strings.CutPrefix(path.Clean(p)+"/", strings.TrimSuffix(o.root, "/")+"/")
	if !inside {
		return "", tool.Errorf(tool.PathOutsideRoot, "%s is outside of %s", p, o.root).WithPath(p)
	}
	if name = strings.TrimSuffix(name, "/"); name == "" {
		name = "."
	}
	return name, nil
}

// read is what a file holds.
func (o *overlay) read(name string) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.look(name)
}

// look is read with o.mu held.
func (o *overlay) look(name string) ([]byte, bool) {
	if f := o.upper[name]; f != nil {
		return f.content, true
	}
	if o.lower == nil {
		return nil, false
	}
	content, err := fs.ReadFile(o.lower, name)
	return content, err == nil
}

// update changes a file, as one step.
func (o *overlay) update(name string, change func(old []byte, exists bool) ([]byte, string)) (old []byte, exists bool, content []byte, refusal string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isDirectory(name) {
		return nil, false, nil, name + " is a directory"
	}
	old, exists = o.look(name)
	if content, refusal = change(old, exists); refusal != "" {
		return old, exists, nil, refusal
	}
	size := o.size + len(content)
	if f := o.upper[name]; f != nil {
		size -= len(f.content)
	}
	if size > maxBytes {
		return old, exists, nil, "the overlay is full"
	}
	o.size = size
	o.upper[name] = &file{content: content, changed: time.Now()}
	return old, exists, content, ""
}

// isDirectory reports whether there is a directory of the name. o.mu is held.
func (o *overlay) isDirectory(name string) bool {
	for upper := range o.upper {
		if name == "." || strings.HasPrefix(upper, name+"/") {
			return true
		}
	}
	if o.lower == nil {
		return name == "."
	}
	info, err := fs.Stat(o.lower, name)
	return err == nil && info.IsDir()
}

// entry is one file or directory of a list.
type entry struct {
	Name  string    `json:"name"`
	Path  string    `json:"path"`
	IsDir bool      `json:"is_dir"`
	Size  int64     `json:"size"`
	Mode  string    `json:"mode"`
	Mtime time.Time `json:"mtime"`
}

// entries lists a directory by name.
func (o *overlay) entries(name string) ([]entry, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isDirectory(name) {
		return nil, false
	}
	found := map[string]entry{}
	if o.lower != nil {
		list, _ := fs.ReadDir(o.lower, name) // it may be in the upper part only
		for _, d := range list {
			e := entry{Name: d.Name(), Path: path.Join(name, d.Name()), IsDir: d.IsDir(), Mode: "0644"}
			if info, err := d.Info(); err == nil {
				e.Size, e.Mtime = info.Size(), info.ModTime()
			}
			found[e.Name] = e
		}
	}
	for upper, f := range o.upper {
		rest, inside := strings.CutPrefix(upper, name+"/")
		if name == "." {
			rest = upper
		} else if !inside {
			continue
		}
		first, _, deeper := strings.Cut(rest, "/")
		e := entry{Name: first, Path: path.Join(name, first), IsDir: deeper, Mode: "0644", Mtime: f.changed}
		if !deeper {
			e.Size = int64(len(f.content))
		}
		found[first] = e
	}
	for name, e := range found {
		if e.IsDir {
			e.Mode = "0755"
			found[name] = e
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b entry) int { return strings.Compare(a.Name, b.Name) }), true
}
