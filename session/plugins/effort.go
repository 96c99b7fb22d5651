package plugins

import (
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// effort knows what the check of a value may take. A schema of a few lines can ask
// for more steps than any machine does: two alternatives that both refer to the next
// two, forty times over. The library's check cannot be cancelled, so its steps are
// counted before, as if each were needed.
type effort struct {
	root  *jsonschema.Schema
	parts map[*jsonschema.Schema]*part
}

// part is what is known of one schema object.
type part struct {
	at      string // JSON pointer to it
	own     int    // what it takes that looks no further, at each member of a value
	program int    // instructions of its pattern
	names   int    // instructions of its patterns of names
	target  *jsonschema.Schema
	state   visit
	chain   int // how many look at the same value, one after the other
}

// inPlace are the schemas that look at the same value.
func (e *effort) inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{e.parts[s].target, s.Not, s.If, s.Then, s.Else})
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	all = slices.AppendSeq(all, maps.Values(s.DependencySchemas))
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// size is how many values there are in v, itself included, and 32 bytes of text are
// as much as a value.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 32
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for name, e := range v {
			n += len(name)/32 + size(e)
		}
	}
	return n
}

// count is one check, counted.
type count struct {
	*effort
	left int
}

// allows reports whether the check of v takes no more than the effort.
func (e *effort) allows(v any, most int) bool {
	c := count{e, most}
	return c.check(e.root, v, 0, 0)
}

// check counts what a schema takes to look at a value. What does not fit is told with
// the value, and with the pointers of all the schemas that led here, which are so
// many levels and characters.
func (c *count) check(s *jsonschema.Schema, v any, level, characters int) bool {
	p := c.parts[s]
	characters += 20 + len(p.at)
	if c.left -= size(v) + characters/32; c.left < 0 || level > maxLevels {
		return false
	}
	members := 0
	switch v := v.(type) {
	case string:
		c.left -= p.program * (len(v) / 8)
	case []any:
		members = len(v)
	case map[string]any:
		members = len(v)
	}
	if c.left -= p.own * (1 + members); c.left < 0 {
		return false
	}
	at := func(below *jsonschema.Schema, v any) bool {
		return below == nil || c.check(below, v, level+1, characters)
	}
	for _, next := range c.inPlace(s) {
		if !at(next, v) {
			return false
		}
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			for _, list := range [...][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
				if i < len(list) && !at(list[i], e) {
					return false
				}
			}
			if !at(s.Items, e) || !at(s.AdditionalItems, e) || !at(s.Contains, e) || !at(s.UnevaluatedItems, e) {
				return false
			}
		}
	case map[string]any:
		for name, e := range v {
			if c.left -= p.names * (1 + len(name)/8); c.left < 0 {
				return false
			}
			for _, below := range s.PatternProperties {
				if !at(below, e) {
					return false
				}
			}
			if !at(s.Properties[name], e) || !at(s.AdditionalProperties, e) || !at(s.UnevaluatedProperties, e) || !at(s.PropertyNames, name) {
				return false
			}
		}
	}
	return true
}
