package profile

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema describes a profile as the user writes it: all members, and for each
// backend which of them it has.
func Schema() *jsonschema.Schema {
	s := &jsonschema.Schema{
		Type:        "object",
		Description: "An execution environment.",
		Required:    []string{"backend"},
		Properties: map[string]*jsonschema.Schema{"backend": {
			Type:        "string",
			Description: "What kind of environment this is.",
			Enum:        enum(spellings(Kinds()...)),
		}},
		PropertyOrder:        []string{"backend"},
		AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}},
	}
	members := table()
	for _, m := range members {
		if slices.Contains(s.PropertyOrder, m.name) {
			continue // one of several rows; the conditions below tell them apart
		}
		d := &jsonschema.Schema{}
		if rows(members, m.name) == 1 {
			d = m.kind.schema()
		}
		d.Description = m.doc + " (" + strings.Join(backendsOf(members, m.name).names(), ", ") + ")"
		s.Properties[m.name] = d
		s.PropertyOrder = append(s.PropertyOrder, m.name)
	}
	for _, kind := range Kinds() {
		s.AllOf = append(s.AllOf, condition(members, kind))
	}
	return s
}

// condition says what a profile of the kind may hold and must.
func condition(members []member, kind string) *jsonschema.Schema {
	p := Profile{Backend: kind}
	names := []any{"backend"}
	then := &jsonschema.Schema{Properties: map[string]*jsonschema.Schema{}}
	for _, m := range members {
		if !p.in(m.backends) {
			continue
		}
		names = append(names, m.name)
		if rows(members, m.name) > 1 {
			then.Properties[m.name] = m.kind.schema()
		}
	}
	then.PropertyNames = &jsonschema.Schema{Enum: names}
	switch {
	case p.in(images):
		then.Required = []string{"image"}
	case p.in(inSSH):
		then.Required = []string{"host"}
	case p.in(inCommand):
		then.Required = []string{"command"}
	}
	return &jsonschema.Schema{
		If: &jsonschema.Schema{
			Required:   []string{"backend"},
			Properties: map[string]*jsonschema.Schema{"backend": {Enum: enum(spellings(kind))}},
		},
		Then: then,
	}
}

// enum makes the words the values of an enumeration.
func enum(words []string) []any {
	var all []any
	for _, w := range words {
		all = append(all, w)
	}
	return all
}

func rows(members []member, name string) int {
	n := 0
	for _, m := range members {
		if m.name == name {
			n++
		}
	}
	return n
}

func backendsOf(members []member, name string) set {
	var s set
	for _, m := range members {
		if m.name == name {
			s |= m.backends
		}
	}
	return s
}
