package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// The methods below are for people who look into the workspace. They fail with
// [tool.EnvironmentLost] when it is not at its path any more, with
// [tool.PathOutsideRoot] for a path that leaves it, and with
// [tool.InvalidParams], wrapping the error of package fs, for a file that is not
// there or not what is needed.

// Stat describes one entry. A symbolic link is described as what it leads to,
// with the type "symlink" when that is nowhere.
func (s *Set) Stat(ctx context.Context, p string) (tool.FileInfo, error) {
	name, err := s.name(p)
	if err != nil {
		return tool.FileInfo{}, err
	}
	info, err := s.o.Root.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = s.o.Root.Lstat(name)
	}
	if err != nil {
		return tool.FileInfo{}, s.forPeople(name, err)
	}
	return s.fileInfo(name, info), nil
}

// ReadDirectory lists a directory, sorted by name, ignored files included.
// Entries that vanish meanwhile are left out.
func (s *Set) ReadDirectory(ctx context.Context, p string) ([]tool.FileInfo, error) {
	name, err := s.name(p)
	if err != nil {
		return nil, err
	}
	names, err := s.names(name)
	if err != nil {
		return nil, s.forPeople(name, err)
	}
	out := make([]tool.FileInfo, 0, len(names))
	for _, n := range names {
		if ctx.Err() != nil {
			return nil, ended(ctx)
		}
		child := path.Join(name, n)
		if info, err := s.o.Root.Lstat(child); err == nil {
			out = append(out, s.fileInfo(child, info))
		}
	}
	return out, nil
}

// ReadFile returns at most length bytes from offset on. length < 0 means to
// the end; more than [tool.MaxFileBytes] are refused then, and never returned.
// An offset behind the end gives no bytes.
func (s *Set) ReadFile(ctx context.Context, p string, offset, length int64) ([]byte, error) {
	name, err := s.name(p)
	if err != nil {
		return nil, err
	}
	if offset < 0 {
		return nil, tool.Errorf(tool.InvalidParams, "the offset %d is negative", offset).WithPath("offset")
	}
	f, info, err := s.o.Root.Open(name)
	if err != nil {
		return nil, s.forPeople(name, err)
	}
	defer f.Close()
	if info.IsDir() {
		return nil, tool.Errorf(tool.InvalidParams, "%q is a directory", s.o.Root.Format(name)).WithPath("path")
	}
	rest := max(0, info.Size()-offset)
	if length < 0 {
		if rest > tool.MaxFileBytes {
			return nil, tool.Errorf(tool.InvalidParams, "%q has %d bytes, at most %d are read at once", s.o.Root.Format(name), info.Size(), tool.MaxFileBytes).
				WithHint("read it in pieces, with offset and length").WithPath("path")
		}
		length = rest
	}
	data := make([]byte, min(length, rest, tool.MaxFileBytes))
	n, err := f.ReadAt(data, offset)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, s.forPeople(name, err)
	}
	return data[:n], nil
}

// WriteFile replaces the file atomically, keeping its mode, and makes missing
// directories. More than [tool.MaxFileBytes] fail with [tool.InvalidParams], and
// everything with [tool.Denied] where the ceiling is read_only.
func (s *Set) WriteFile(ctx context.Context, p string, data []byte) (tool.FileInfo, error) {
	if s.o.Ceiling == tool.ReadOnly {
		return tool.FileInfo{}, tool.Errorf(tool.Denied, "this environment is read_only")
	}
	name, err := s.name(p)
	if err != nil {
		return tool.FileInfo{}, err
	}
	if len(data) > tool.MaxFileBytes {
		return tool.FileInfo{}, tool.Errorf(tool.InvalidParams, "the content has %d bytes, at most %d are written at once", len(data), tool.MaxFileBytes).WithPath("data")
	}
	defer s.lock(name)()
	info, err := s.o.Root.Write(name, data, workspace.WriteOptions{})
	if err != nil {
		return tool.FileInfo{}, s.forPeople(name, err)
	}
	return s.fileInfo(name, info), nil
}

// name is the name of a path in a workspace that is where it was.
func (s *Set) name(p string) (string, error) {
	if err := s.o.Root.Check(); err != nil {
		return "", err
	}
	return s.o.Root.Name(p)
}

// forPeople gives an error about a file a kind.
func (s *Set) forPeople(name string, err error) error {
	var e *tool.Error
	if errors.As(err, &e) {
		return e
	}
	kind := tool.Internal
	for _, known := range []error{
		fs.ErrNotExist, fs.ErrExist, workspace.ErrNotDirectory, workspace.ErrSpecial,
		syscall.EISDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
	} {
		if errors.Is(err, known) {
			kind = tool.InvalidParams
		}
	}
	if errors.Is(err, fs.ErrPermission) {
		kind = tool.Denied
	}
	e = tool.Errorf(kind, "%s", s.sentence(err)).WithPath(s.o.Root.Format(name))
	if kind == tool.InvalidParams {
		e.Path = "path" // the member that named the file, which is in the message
	}
	e.Err = err
	return e
}

// names are the names in a directory, sorted.
func (s *Set) names(name string) ([]string, error) {
	f, info, err := s.o.Root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, &fs.PathError{Op: "list", Path: name, Err: workspace.ErrNotDirectory}
	}
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

func (s *Set) fileInfo(name string, info fs.FileInfo) tool.FileInfo {
	kind := "other"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		kind = "file"
	case mode.IsDir():
		kind = "directory"
	case mode&fs.ModeSymlink != 0:
		kind = "symlink"
	}
	return tool.FileInfo{
		Name: workspace.Format(path.Base(name)), Path: s.o.Root.Format(name), Type: kind,
		Size: info.Size(), Mode: octal(info.Mode()), ModTime: info.ModTime(),
	}
}

// octal writes the permissions as "0644", with the set-id and sticky bits.
func octal(mode fs.FileMode) string {
	bits := mode.Perm()
	for bit, flag := range map[fs.FileMode]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if mode&flag != 0 {
			bits |= bit
		}
	}
	return fmt.Sprintf("%04o", uint32(bits))
}

type listArgs struct {
	Path   string `json:"path"`
	Offset *int64 `json:"offset"`
}

// paging is what every paged result has.
type paging struct {
	Total         int  `json:"total"`
	Offset        int  `json:"offset"`
	ReturnedCount int  `json:"returned_count"`
	HasMore       bool `json:"has_more"`
}

func newPaging(total, offset, returned int) paging {
	return paging{total, offset, returned, offset+returned < total}
}

type listResult struct {
	Path    string  `json:"path"`
	Entries []entry `json:"entries"`
	paging  `json:",inline"`
}

// entry is one line of a listing.
type entry struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	IsDir bool   `json:"is_dir"`
	Size  int64  `json:"size"`
	Mode  string `json:"mode"`
	MTime string `json:"mtime"`
	// Type tells what is neither a file nor a directory: symlink or other.
	Type string `json:"type,omitempty"`
	// Target is where a symbolic link leads.
	Target string `json:"target,omitempty"`
}

func (s *Set) listFiles(ctx context.Context, c *call, a listArgs) (tool.Result, error) {
	if err := between("offset", a.Offset, 0, maxOffset); err != nil {
		return tool.Result{}, err
	}
	name, err := s.o.Root.Name(a.Path)
	if err != nil {
		return tool.Result{}, err
	}
	names, err := s.names(name)
	if errors.Is(err, workspace.ErrNotDirectory) {
		return tool.Result{}, refuse("%q is a file; read_file reads it", s.o.Root.Format(name))
	}
	if err != nil {
		return tool.Result{}, err
	}
	offset := int(or(a.Offset, 0))
	room := s.limit(c, pageBytes)
	res := listResult{Path: s.o.Root.Format(name), Entries: []entry{}}
	seen := 0 // of the page, with those that vanished
	for _, n := range names[min(offset, len(names)):] {
		if seen == pageEntries || room <= 0 {
			break
		}
		if ctx.Err() != nil {
			return tool.Result{}, ended(ctx)
		}
		seen++
		child := path.Join(name, n)
		info, err := s.o.Root.Lstat(child)
		if err != nil {
			continue
		}
		e := s.entry(child, info)
		room -= len(e.Name) + len(e.Path) + len(e.Target)
		res.Entries = append(res.Entries, e)
	}
	res.paging = newPaging(len(names), offset, seen)
	return result(res)
}

func (s *Set) entry(name string, info fs.FileInfo) entry {
	f := s.fileInfo(name, info)
	e := entry{Name: f.Name, Path: f.Path, IsDir: info.IsDir(), Size: f.Size, Mode: f.Mode, MTime: f.ModTime.UTC().Format("2006-01-02T15:04:05Z")}
	if f.Type == "symlink" || f.Type == "other" {
		e.Type = f.Type
	}
	if f.Type == "symlink" {
		if target, err := s.o.Root.Readlink(name); err == nil {
			e.Target = workspace.Format(strings.ToValidUTF8(target, "\ufffd"))
		}
	}
	return e
}
