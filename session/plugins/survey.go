package plugins

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// surveyor makes an effort of a schema, and refuses what could not be used.
type surveyor struct {
	*effort
	draft7   bool
	order    []*jsonschema.Schema
	anchors  map[string]*jsonschema.Schema
	programs int
}

// survey looks at all of a schema.
func survey(root *jsonschema.Schema) (*effort, error) {
	s := surveyor{
		effort:  &effort{root, map[*jsonschema.Schema]*part{}, map[string]*jsonschema.Schema{}},
		anchors: map[string]*jsonschema.Schema{},
	}
	// The library knows one way to write each, and says so when it checks a value.
	switch draft := strings.TrimSuffix(root.Schema, "#"); strings.Replace(draft, "http://", "https://", 1) {
	case "":
	case "https://json-schema.org/draft/2020-12/schema":
		root.Schema = "https://json-schema.org/draft/2020-12/schema"
	case "https://json-schema.org/draft-07/schema":
		s.draft7 = true
		root.Schema = "http://json-schema.org/draft-07/schema#"
	default:
		return nil, fmt.Errorf("has the $schema %q, which is not known: it may be draft 2020-12 or draft-07; leave it out for the former", clip(root.Schema))
	}
	root.ID = "" // no reference needs it, and each message would have it in it
	if err := s.schema(root, ""); err != nil {
		return nil, err
	}
	for _, schema := range s.order {
		if err := s.refer(schema); err != nil {
			return nil, err
		}
	}
	for _, schema := range s.order {
		if err := s.ends(schema); err != nil {
			return nil, err
		}
	}
	return s.effort, nil
}

// schema looks at one schema object and those below it.
func (s *surveyor) schema(schema *jsonschema.Schema, at string) error {
	if schema == nil {
		return wrong(at, "null is no schema")
	}
	if len(at) > maxPointer {
		return fmt.Errorf("has names of more than %d characters within each other at %s", maxPointer, clip(at))
	}
	p := &part{at: at, own: 10 + len(schema.Enum), says: saysLittle}
	for _, limit := range []*float64{schema.MultipleOf, schema.Minimum, schema.Maximum, schema.ExclusiveMinimum, schema.ExclusiveMaximum} {
		if limit != nil {
			p.says = saysNumbers
			p.numbers++
			p.own += digits(*limit)
		}
	}
	// texts are compared with names, or told in quotes.
	texts := func(lists ...[]string) {
		for _, text := range slices.Concat(lists...) {
			p.own += 1 + len(text)/32
			p.says += quoted(len(text))
		}
	}
	texts(schema.Required, schema.Types, []string{schema.Pattern})
	s.parts[schema], s.places[at] = p, schema
	s.order = append(s.order, schema)
	for _, anchor := range []string{schema.Anchor, schema.DynamicAnchor} {
		if anchor != "" {
			s.anchors[anchor] = schema
		}
	}
	if err := s.sane(schema, at); err != nil {
		return err
	}
	if n := schema.MultipleOf; n != nil && *n != math.Trunc(*n) {
		schema.MultipleOf = nil // the library divides: it would refuse 19.99 as a multiple of 0.01
	}
	values := slices.Clone(schema.Enum)
	if schema.Const != nil {
		values = append(values, *schema.Const)
	}
	for _, v := range values {
		switch v.(type) {
		case float64:
			p.numbers++
		case []any, map[string]any:
			p.own += size(v) * mostDigits // of what is compared with its numbers
		}
		p.own += size(v) + digits(v)
		p.says += 1 + text(v)
	}
	for _, dependencies := range []map[string][]string{schema.DependentRequired, schema.DependencyStrings} {
		for name, names := range dependencies {
			texts([]string{name}, names)
		}
	}
	var err error
	if p.program, err = s.pattern(schema.Pattern, at+"/pattern"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(schema.PatternProperties)) {
		n, err := s.pattern(name, at+"/patternProperties/"+escape(name))
		if err != nil {
			return err
		}
		p.names += n
	}
	for place, below := range children(schema) {
		p.own++
		if err := s.schema(below, at+"/"+place); err != nil {
			return err
		}
		p.says += len("<anonymous schema> ") + len(below.Anchor) // how it is called
	}
	return nil
}

// types are all that a value may be of.
var types = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// sane refuses what the library takes and nobody can have meant, and what it would
// not know before the arguments are there.
func (s *surveyor) sane(schema *jsonschema.Schema, at string) error {
	for _, name := range append(slices.Clone(schema.Types), schema.Type) {
		if name != "" && !slices.Contains(types, name) {
			return wrong(at+"/type", "%q is no type; there are %s", clip(name), strings.Join(types, ", "))
		}
	}
	for keyword, list := range map[string][]*jsonschema.Schema{"allOf": schema.AllOf, "anyOf": schema.AnyOf, "oneOf": schema.OneOf} {
		if list != nil && len(list) == 0 {
			return wrong(at+"/"+keyword, "is an empty array")
		}
	}
	for keyword, n := range map[string]*int{
		"minLength": schema.MinLength, "maxLength": schema.MaxLength, "minItems": schema.MinItems, "maxItems": schema.MaxItems,
		"minContains": schema.MinContains, "maxContains": schema.MaxContains,
		"minProperties": schema.MinProperties, "maxProperties": schema.MaxProperties,
	} {
		if n != nil && *n < 0 {
			return wrong(at+"/"+keyword, "must be 0 or more, got %d", *n)
		}
	}
	switch {
	case schema.MultipleOf != nil && *schema.MultipleOf <= 0:
		return wrong(at+"/multipleOf", "must be more than 0")
	case schema.ItemsArray != nil && !s.draft7:
		return wrong(at+"/items", "is an array; draft 2020-12 calls that prefixItems")
	case schema.DynamicRef != "" || schema.Extra["$recursiveRef"] != nil:
		return fmt.Errorf("has $dynamicRef or $recursiveRef at %q, which are not supported: use $ref", clip(at))
	case schema.Vocabulary != nil:
		return fmt.Errorf("has $vocabulary at %q, which is not supported", clip(at))
	case schema.ID != "" && at != "":
		return fmt.Errorf("has a second $id at %q, which is not supported", clip(at))
	}
	return nil
}

// wrong is a fault of a schema.
func wrong(at, format string, args ...any) error {
	return fmt.Errorf("is not a JSON Schema: at %s: %s", clip(at), fmt.Sprintf(format, args...))
}

// pattern is how many instructions a regular expression has, which are those of RE2:
// it takes a time in proportion to the text, whatever the expression.
func (s *surveyor) pattern(text, at string) (int, error) {
	if text == "" {
		return 0, nil
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0, wrong(at, "the pattern %s cannot be used: %s", clip(text), clip(err.Error()))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, wrong(at, "the pattern %s cannot be used: %s", clip(text), clip(err.Error()))
	}
	if s.programs += len(program.Inst); len(program.Inst) > maxInstructions || s.programs > maxPrograms {
		return 0, fmt.Errorf("cannot be used: at %s: the pattern %s is too large", clip(at), clip(text))
	}
	return len(program.Inst), nil
}

// refer finds what a reference leads to.
func (s *surveyor) refer(schema *jsonschema.Schema) error {
	if schema.Ref == "" {
		return nil
	}
	p := s.parts[schema]
	at := clip(p.at + "/$ref")
	place, local := strings.CutPrefix(schema.Ref, "#")
	if plain, err := url.PathUnescape(place); err == nil {
		place = plain
	}
	switch {
	case !local:
		return fmt.Errorf("refers to %q at %q: references must stay within it, and begin with #", clip(schema.Ref), at)
	case s.places[place] != nil:
		p.target = s.places[place]
	case strings.HasPrefix(place, "/"):
		return fmt.Errorf("refers to %q at %q, where no schema is: put it under $defs", clip(schema.Ref), at)
	case s.anchors[place] != nil:
		p.target = s.anchors[place]
	default:
		return fmt.Errorf("refers to %q at %q, which is not there", clip(schema.Ref), at)
	}
	return nil
}

// visit is how far a schema object has been looked at for circles.
type visit int

const (
	unseen visit = iota
	entered
	left
)

// ends checks that looking at a value comes to an end: what looks at the same value
// again must not come back to itself, nor go on for long, since that is recursion.
func (s *surveyor) ends(schema *jsonschema.Schema) error {
	p := s.parts[schema]
	switch p.state {
	case left:
		return nil
	case entered:
		return fmt.Errorf("refers to itself at %q, without a step into the arguments: no check of it would end", clip("#"+p.at))
	}
	p.state = entered
	for _, next := range s.inPlace(schema) {
		if err := s.ends(next); err != nil {
			return err
		}
		p.chain = max(p.chain, 1+s.parts[next].chain)
	}
	p.state = left
	if p.chain > maxChain {
		return fmt.Errorf("has more than %d references and alternatives within each other at %q", maxChain, clip(p.at))
	}
	return nil
}

// children are the schemas within a schema, by their places there.
func children(s *jsonschema.Schema) map[string]*jsonschema.Schema {
	all := map[string]*jsonschema.Schema{}
	for name, one := range map[string]*jsonschema.Schema{
		"items": s.Items, "additionalItems": s.AdditionalItems, "contains": s.Contains, "unevaluatedItems": s.UnevaluatedItems,
		"additionalProperties": s.AdditionalProperties, "propertyNames": s.PropertyNames, "unevaluatedProperties": s.UnevaluatedProperties,
		"not": s.Not, "if": s.If, "then": s.Then, "else": s.Else, "contentSchema": s.ContentSchema,
	} {
		if one != nil {
			all[name] = one
		}
	}
	for name, list := range map[string][]*jsonschema.Schema{
		"items": s.ItemsArray, "prefixItems": s.PrefixItems, "allOf": s.AllOf, "anyOf": s.AnyOf, "oneOf": s.OneOf,
	} {
		for i, one := range list {
			all[name+"/"+strconv.Itoa(i)] = one
		}
	}
	for name, members := range map[string]map[string]*jsonschema.Schema{
		"$defs": s.Defs, "definitions": s.Definitions, "properties": s.Properties, "patternProperties": s.PatternProperties,
		"dependentSchemas": s.DependentSchemas, "dependencies": s.DependencySchemas,
	} {
		for key, one := range members {
			all[name+"/"+escape(key)] = one
		}
	}
	return all
}

// escape writes a name as a part of a JSON pointer.
func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }
