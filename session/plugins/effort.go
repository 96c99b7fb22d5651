package plugins

import (
	"maps"
	"math"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// effort knows what the check of a value may take. A schema of a few lines can ask
// for more steps than any machine does: two alternatives that both refer to the next
// two, forty times over. The library's check cannot be cancelled, so its steps are
// counted before, as if each were needed. So is what it writes: whatever fails is told
// with the value, and told again by all that led there, also where another alternative
// makes it right.
type effort struct {
	root   *jsonschema.Schema
	parts  map[*jsonschema.Schema]*part
	places map[string]*jsonschema.Schema // by JSON pointer
}

// part is what is known of one schema object.
type part struct {
	at      string // JSON pointer to it
	own     int    // what it takes that looks no further, at each member of a value
	says    int    // bytes of what it says of a value, without the value
	numbers int    // how many a number is compared with
	program int    // instructions of its pattern
	names   int    // instructions of its patterns of names
	target  *jsonschema.Schema
	state   visit
	chain   int // how many look at the same value, one after the other
}

// inPlace are the schemas that look at the same value.
func (e *effort) inPlace(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(e.needed(s), s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If})
	return slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil })
}

// needed are those of them that end the check where one fails. Some may be nil.
func (e *effort) needed(s *jsonschema.Schema) []*jsonschema.Schema {
	all := slices.Concat(s.AllOf, []*jsonschema.Schema{e.parts[s].target, s.Then, s.Else})
	all = slices.AppendSeq(all, maps.Values(s.DependentSchemas))
	return slices.AppendSeq(all, maps.Values(s.DependencySchemas))
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

// digits is what numbers take beside being values: they are compared as fractions, which
// are reduced, and that of 1e-300 has a thousand bits.
func digits(v any) int {
	n := 0
	switch v := v.(type) {
	case float64:
		_, exponent := math.Frexp(v)
		n = max(exponent, -exponent) / 64
	case []any:
		for _, e := range v {
			n += digits(e)
		}
	case map[string]any:
		for _, e := range v {
			n += digits(e)
		}
	}
	return n
}

// text is how many bytes a value takes in a message.
func text(v any) int {
	n := 32 // the longest number
	switch v := v.(type) {
	case string:
		n = len(v)
	case []any:
		for _, e := range v {
			n += text(e)
		}
	case map[string]any:
		for name, e := range v {
			n += 2 + len(name) + text(e)
		}
	}
	return n
}

// quoted is how many bytes text of n bytes takes in quotes, at most.
func quoted(n int) int { return 3 + 4*n }

// count is one check, counted.
type count struct {
	*effort
	left int
}

// words are what a check may say: the longest message, and that with all those that
// led to it and that it was led to, each of which has it in it.
type words struct{ last, all int }

// most is what is said where only one of two can fail, since it ends the check.
func (w *words) most(other words) {
	w.last, w.all = max(w.last, other.last), max(w.all, other.all)
}

// allows reports whether the check of v takes no more than the effort.
func (e *effort) allows(v any, most int) bool {
	c := count{e, most}
	said := c.check(e.root, v, 0)
	c.write(said)
	return c.left >= 0
}

// write counts what is said. It is copied a few times on its way.
func (c *count) write(said words) { c.left -= said.all / bytesEffort }

// check counts what a schema takes to look at a value, and returns what it says at most
// if that fails. It ends early where nothing is left.
func (c *count) check(s *jsonschema.Schema, v any, level int) words {
	p := c.parts[s]
	if c.left -= size(v) + digits(v); level > maxLevels {
		c.left = -1
	}
	if s.UniqueItems {
		c.left -= uniqueEffort * size(v)
	}
	members, own := 0, p.says
	switch v := v.(type) {
	case float64:
		c.left -= p.numbers * (numberEffort + digits(v))
	case string:
		c.left -= p.program * (len(v) / 8)
		if s.MinLength != nil || s.MaxLength != nil || s.Pattern != "" {
			own += quoted(len(v))
		} else {
			own += len(v)
		}
	case []any:
		members, own = len(v), own+text(v)
	case map[string]any:
		members, own = len(v), own+text(v)
		if s.AdditionalProperties != nil {
			for name := range v {
				own += quoted(len(name))
			}
		}
	}
	c.left -= p.own * (1 + members)
	said := words{own, 0}
	at := func(below *jsonschema.Schema, v any) (w words) {
		if below != nil && c.left >= 0 {
			w = c.check(below, v, level+1)
		}
		return w
	}
	// What fails within these does not end the check.
	maybe := func(below *jsonschema.Schema, v any) int {
		w := at(below, v)
		c.write(w)
		return w.last
	}
	together := own
	for _, below := range s.AnyOf {
		together += 1 + maybe(below, v)
	}
	said.last = max(said.last, together)
	for _, below := range slices.Concat(s.OneOf, []*jsonschema.Schema{s.Not, s.If}) {
		maybe(below, v)
	}
	for _, below := range c.needed(s) {
		said.most(at(below, v))
	}
	switch v := v.(type) {
	case []any:
		for i, e := range v {
			for _, list := range [...][]*jsonschema.Schema{s.PrefixItems, s.ItemsArray} {
				if i < len(list) {
					said.most(at(list[i], e))
				}
			}
			said.most(at(s.Items, e))
			said.most(at(s.AdditionalItems, e))
			said.most(at(s.UnevaluatedItems, e))
			maybe(s.Contains, e)
		}
	case map[string]any:
		for name, e := range v {
			c.left -= p.names * (1 + len(name)/8)
			for _, below := range s.PatternProperties {
				said.most(at(below, e))
			}
			said.most(at(s.Properties[name], e))
			said.most(at(s.AdditionalProperties, e))
			said.most(at(s.UnevaluatedProperties, e))
			said.most(at(s.PropertyNames, name))
		}
	}
	said.last += len("validating : ") + len(p.at)
	said.all += said.last
	return said
}
