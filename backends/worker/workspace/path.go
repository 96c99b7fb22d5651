package workspace

import (
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/caisson-dev/caisson/backends/tool"
)

// bytesPrefix marks a path in which %XX stands for one byte.
const bytesPrefix = "bytes:"

// MaxPath is the longest path that a tool may be given, in bytes: Linux takes
// no longer one.
const MaxPath = 4096

// Format writes a file's name or path the way tools give it: as it is, or,
// where that is not valid UTF-8 or begins with "bytes:", as "bytes:" followed
// by the name percent-encoded. [Root.Name] takes it back.
func Format(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, bytesPrefix) {
		return name
	}
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(bytesPrefix)+3*len(name))
	b = append(b, bytesPrefix...)
	for i := range len(name) {
		if c := name[i]; unreserved(c) {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(b)
}

// unreserved reports whether c stands for itself in a percent-encoded path.
func unreserved(c byte) bool {
	switch {
	case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		return true
	}
	return c == '-' || c == '.' || c == '_' || c == '~' || c == '/'
}

// Parse undoes [Format]. A path without the prefix is returned as it is; one
// whose coding is broken fails with [tool.InvalidParams].
func Parse(p string) (string, error) {
	coded, ok := strings.CutPrefix(p, bytesPrefix)
	if !ok {
		return p, nil
	}
	b := make([]byte, 0, len(coded))
	for i := 0; i < len(coded); i++ {
		if coded[i] != '%' {
			b = append(b, coded[i])
			continue
		}
		if i+2 >= len(coded) {
			return "", badCoding(p)
		}
		hi, ok1 := unhex(coded[i+1])
		lo, ok2 := unhex(coded[i+2])
		if !ok1 || !ok2 {
			return "", badCoding(p)
		}
		b = append(b, hi<<4|lo)
		i += 2
	}
	return string(b), nil
}

func unhex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

func badCoding(p string) error {
	return tool.Errorf(tool.InvalidParams, "the path %q has a broken percent-encoding", p).
		WithHint("after \"bytes:\" every %% must be followed by two hex digits").WithPath("path")
}

// Name turns a path that a tool was given into a clean name relative to the
// root, "." for the root itself, with slashes on every system. The path may be
// relative, absolute under the root, or empty, which is the root; ".." is
// resolved by its letters, before any symbolic link is.
//
// It fails with [tool.PathOutsideRoot] for a path that leaves the root and
// with [tool.InvalidParams] for one that no file can have. It touches no file:
// links that lead out are found when the name is opened.
func (r *Root) Name(p string) (string, error) {
	raw, err := Parse(p)
	if err != nil {
		return "", err
	}
	if len(raw) > MaxPath {
		return "", tool.Errorf(tool.InvalidParams, "the path is %d bytes long, at most %d are possible", len(raw), MaxPath).WithPath("path")
	}
	if strings.IndexByte(raw, 0) >= 0 {
		return "", tool.Errorf(tool.InvalidParams, "the path %q holds a NUL byte, which no file name can", p).WithPath("path")
	}
	if filepath.IsAbs(raw) || strings.HasPrefix(raw, "/") {
		rel, ok := r.under(raw)
		if !ok {
			return "", r.outside(p)
		}
		raw = rel
	}
	name := path.Clean(filepath.ToSlash(raw))
	if name == ".." || strings.HasPrefix(name, "../") || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", r.outside(p)
	}
	return name, nil
}

// under makes an absolute path relative to the root, under any of the names
// that the root is known by.
func (r *Root) under(abs string) (string, bool) {
	abs = filepath.Clean(abs)
	for _, dir := range r.names {
		if abs == dir {
			return ".", true
		}
		prefix := dir
		if !strings.HasSuffix(prefix, string(filepath.Separator)) {
			prefix += string(filepath.Separator)
		}
		if rel, ok := strings.CutPrefix(abs, prefix); ok {
			return rel, true
		}
	}
	return "", false
}
