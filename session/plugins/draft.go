package plugins

import (
	"fmt"
	"strings"
)

// draft is a version of JSON Schema, by its number or year. Between them a few
// keywords came, went, or changed.
type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
)

// draftOf is the draft that a schema says it is of.
func draftOf(s map[string]any) (draft, error) {
	v, is := s["$schema"]
	if !is {
		return draft2020, nil
	}
	uri, ok := v.(string)
	if !ok {
		return 0, wrong("/$schema", "must be a string, got %s", typeOf(v))
	}
	_, name, _ := strings.Cut(strings.TrimSuffix(uri, "#"), "://")
	switch name {
	case "json-schema.org/draft-04/schema":
		return draft4, nil
	case "json-schema.org/draft-06/schema":
		return draft6, nil
	case "json-schema.org/draft-07/schema":
		return draft7, nil
	case "json-schema.org/draft/2019-09/schema":
		return draft2019, nil
	case "json-schema.org/draft/2020-12/schema":
		return draft2020, nil
	}
	return 0, fmt.Errorf("has the $schema %q, which is not known: leave it out for draft 2020-12, or name that or 2019-09, 07, 06 or 04; nothing is loaded from elsewhere", clip(uri))
}

// id is the keyword that names a schema.
func (d draft) id() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}

// has reports whether a word that the checker knows is a keyword of the draft.
// Other words mean nothing. That dependencies are one of every draft is what the later
// ones allow.
func (d draft) has(keyword string) bool {
	switch keyword {
	case "const", "contains", "propertyNames":
		return d >= draft6
	case "if", "then", "else":
		return d >= draft7
	case "minContains", "maxContains", "dependentRequired", "dependentSchemas",
		"unevaluatedItems", "unevaluatedProperties", "$anchor":
		return d >= draft2019
	case "prefixItems", "$dynamicAnchor":
		return d >= draft2020
	case "additionalItems":
		return d <= draft2019
	}
	return true
}
