package profile

import (
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Reference is one row of the table of a profile's members, for its
// documentation. A member that means something else to another backend has
// several rows.
type Reference struct {
	Name string
	// Backends are those that have it, in words.
	Backends string
	// Identity says that another value makes another environment.
	Identity bool
	Value    *jsonschema.Schema
	Doc      string
}

// References is the table, in the order of the documentation.
func References() []Reference {
	var rows []Reference
	for _, m := range table() {
		rows = append(rows, Reference{m.name, m.backends.words(), m.identity, m.kind.schema(), m.doc})
	}
	return rows
}

// fewExceptions is how many backends may be missing of a set that is told by
// what it has not.
const fewExceptions = 3

// words tells the set in few words.
func (s set) words() string {
	switch rest := (all &^ s).names(); {
	case len(rest) == 0:
		return "all"
	case len(rest) <= fewExceptions:
		return "all but " + strings.Join(rest, ", ")
	}
	return strings.Join(s.names(), ", ")
}
