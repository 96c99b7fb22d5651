package profile

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Path names a value inside a JSON document by member names and, for elements
// of arrays, decimal indexes.
type Path []string

// String writes the path as a person would: a.b[0]["with.dot"].
func (p Path) String() string {
	var b strings.Builder
	for _, s := range p {
		switch {
		case isIndex(s):
			fmt.Fprintf(&b, "[%s]", s)
		case !isPlain(s):
			fmt.Fprintf(&b, "[%q]", s)
		case b.Len() > 0:
			b.WriteByte('.')
			b.WriteString(s)
		default:
			b.WriteString(s)
		}
	}
	return b.String()
}

// Under returns the path below prefix.
func (p Path) Under(prefix ...string) Path {
	return append(append(make(Path, 0, len(prefix)+len(p)), prefix...), p...)
}

func isIndex(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func isPlain(s string) bool {
	for _, c := range s {
		if c != '_' && c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return s != ""
}

// Error is what is wrong with one member of a profile.
type Error struct {
	// Path is the member below the profile; empty means the profile as a whole.
	Path    Path
	Message string
	// Suggestion is the nearest known name for an unknown one, or "".
	Suggestion string
}

func (e *Error) Error() string {
	s := e.Message
	if len(e.Path) > 0 {
		s = e.Path.String() + ": " + s
	}
	if e.Suggestion != "" {
		s += fmt.Sprintf(" (did you mean %q?)", e.Suggestion)
	}
	return s
}

// wrong makes an Error about the whole of what is being looked at; callers put
// the path in front with below.
func wrong(format string, args ...any) *Error {
	return &Error{Message: fmt.Sprintf(format, args...)}
}

// at makes an Error about a member.
func at(member, format string, args ...any) *Error {
	return wrong(format, args...).below(member)
}

// below puts the path of e under prefix.
func (e *Error) below(prefix ...string) *Error {
	if e != nil {
		e.Path = e.Path.Under(prefix...)
	}
	return e
}

// Nearest is [tool.Nearest], for whoever knows profiles alone.
func Nearest(name string, known []string) string { return tool.Nearest(name, known) }
