package ignore

import (
	"bytes"
	"strings"
)

// verdict is what ignore rules say about a path.
type verdict int

const (
	silent verdict = iota
	ignored
	kept // a "!" pattern takes it back
)

// file holds the patterns of one ignore file and, through parent, those
// further up. A nil *file says nothing.
type file struct {
	parent   *file
	base     string // the file's directory with a slash after it, "" for the root
	patterns []pattern
}

// pattern is one line of an ignore file.
type pattern struct {
	text     string
	literal  int // how many bytes stand before the first special one
	negated  bool
	dirOnly  bool
	nameOnly bool // without a slash: it is compared with the last component
	suffix   bool // "*" and then no special byte: only the end is compared
}

// judge returns the verdict on a path relative to the root. The nearest file
// and the last line in it win.
func (r *file) judge(path, name string, isDir bool) verdict {
	for ; r != nil; r = r.parent {
		for i := len(r.patterns) - 1; i >= 0; i-- {
			p := &r.patterns[i]
			if p.dirOnly && !isDir || !p.match(path[len(r.base):], name) {
				continue
			}
			if p.negated {
				return kept
			}
			return ignored
		}
	}
	return silent
}

// match compares a pattern with a path relative to its file's directory.
func (p *pattern) match(path, name string) bool {
	if p.nameOnly {
		switch {
		case p.literal == len(p.text):
			return p.text == name
		case p.suffix:
			return strings.HasSuffix(name, p.text[1:])
		default:
			return wildmatch(p.text, name, false)
		}
	}
	// Git compares what stands before the first special byte by itself, so that
	// a "**" after it begins a pattern.
	if !strings.HasPrefix(path, p.text[:p.literal]) {
		return false
	}
	rest, path := p.text[p.literal:], path[p.literal:]
	return wildmatch(rest, path, true)
}

// parse reads an ignore file that lies in the directory base.
func parse(content []byte, base string, parent *file) *file {
	content = bytes.TrimPrefix(content, []byte("\ufeff"))
	r := &file{parent: parent, base: base}
	for line := range strings.SplitSeq(string(content), "\n") {
		if p, ok := parsePattern(line); ok {
			r.patterns = append(r.patterns, p)
		}
	}
	if len(r.patterns) == 0 {
		return parent
	}
	return r
}

func parsePattern(line string) (pattern, bool) {
	line = strings.TrimSuffix(line, "\r")
	if line == "" || line[0] == '#' {
		return pattern{}, false
	}
	line = trimSpaces(line)
	p := pattern{}
	line, p.negated = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.nameOnly = !strings.Contains(line, "/")
	if !p.nameOnly {
		line = strings.TrimPrefix(line, "/")
	}
	if line == "" {
		return pattern{}, false
	}
	p.text = line
	if p.literal = strings.IndexAny(line, `*?[\`); p.literal < 0 {
		p.literal = len(line)
	}
	p.suffix = p.nameOnly && line[0] == '*' && !strings.ContainsAny(line[1:], `*?[\`)
	return p, true
}

// trimSpaces removes trailing spaces that no backslash protects.
func trimSpaces(s string) string {
	end := len(s) // where the trailing spaces begin
	spaces := false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case ' ':
			if !spaces {
				end, spaces = i, true
			}
		case '\\':
			if i++; i == len(s) {
				return s
			}
			spaces = false
		default:
			spaces = false
		}
	}
	if spaces {
		return s[:end]
	}
	return s
}
