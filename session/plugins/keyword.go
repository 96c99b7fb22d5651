package plugins

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// taker compiles one keyword of a schema object into its node.
type taker struct {
	*compiler
	*node
	at    string // pointer to the keyword
	level int
}

// keyword takes the keyword with its value. Words that are none mean nothing.
func (k taker) keyword(name string, v any) (err error) {
	switch name {
	case "$ref":
		k.refers, err = k.text(v)
		if k.refers == "" && err == nil {
			k.refers = "#" // the document itself, as "" is by the rules of URIs
		}
	case "$anchor", "$dynamicAnchor":
		var anchor string
		if anchor, err = k.text(v); err == nil {
			k.anchors[anchor] = k.node
		}
	case "$comment", "$id", "id", "title", "description", "format", "contentEncoding", "contentMediaType":
		_, err = k.text(v)
	case "deprecated", "readOnly", "writeOnly":
		_, err = k.boolean(v)
	case "$defs", "definitions":
		_, err = k.schemas(v)
	case "contentSchema":
		_, err = k.below(v)
	case "type":
		k.types, err = k.typeNames(v)
	case "enum":
		err = k.values(v)
	case "const":
		err = k.values([]any{v})
	case "multipleOf":
		if k.multipleOf, err = k.number(v); err == nil && k.multipleOf.sign() <= 0 {
			err = wrong(k.at, "must be more than 0, got %s", clip(k.multipleOf.text))
		}
	case "minimum":
		k.minimum, err = k.number(v)
	case "maximum":
		k.maximum, err = k.number(v)
	case "exclusiveMinimum":
		k.above, err = k.exclusiveLimit(v)
	case "exclusiveMaximum":
		k.node.below, err = k.exclusiveLimit(v)
	case "pattern":
		var text string
		if text, err = k.text(v); err == nil {
			k.node.pattern, err = k.compiler.pattern(text, k.at)
		}
	case "minLength":
		k.length.least, err = k.count(v)
	case "maxLength":
		k.length.most, err = k.count(v)
	case "minItems":
		k.node.items.least, err = k.count(v)
	case "maxItems":
		k.node.items.most, err = k.count(v)
	case "minProperties":
		k.members.least, err = k.count(v)
	case "maxProperties":
		k.members.most, err = k.count(v)
	case "minContains":
		k.contained.least, err = k.count(v)
	case "maxContains":
		k.contained.most, err = k.count(v)
	case "uniqueItems":
		k.unique, err = k.boolean(v)
	default:
		return k.applicator(name, v)
	}
	return err
}

// applicator takes a keyword whose value holds schemas.
func (k taker) applicator(name string, v any) (err error) {
	switch name {
	case "items":
		if _, list := v.([]any); list && k.draft <= draft2019 {
			k.listed = true
			k.prefix, err = k.list(v)
		} else {
			var n *node
			if n, err = k.below(v); k.draft > draft2019 {
				k.rest = n
			}
		}
	case "additionalItems":
		k.rest, err = k.below(v)
	case "prefixItems":
		k.prefix, err = k.list(v)
	case "contains":
		k.contains, err = k.below(v)
	case "unevaluatedItems":
		k.unevaluated = true
		k.unevaluatedItems, err = k.below(v)
	case "properties":
		k.properties, err = k.schemas(v)
		k.names = slices.Sorted(maps.Keys(k.properties))
	case "patternProperties":
		err = k.patterns(v)
	case "additionalProperties":
		k.additional, err = k.below(v)
	case "propertyNames":
		k.propertyNames, err = k.below(v)
	case "unevaluatedProperties":
		k.unevaluated = true
		k.unevaluatedProperties, err = k.below(v)
	case "required":
		k.required, err = k.texts(v)
	case "dependentRequired", "dependentSchemas", "dependencies":
		err = k.dependents(name, v)
	case "allOf":
		k.allOf, err = k.list(v)
	case "anyOf":
		k.anyOf, err = k.list(v)
	case "oneOf":
		k.oneOf, err = k.list(v)
	case "not":
		k.not, err = k.below(v)
	case "if":
		k.condition, err = k.below(v)
	case "then":
		k.then, err = k.below(v)
	case "else":
		k.otherwise, err = k.below(v)
	}
	return err
}

// is takes a value of the type of T, which is called so in JSON.
func is[T any](at string, v any, called string) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, wrong(at, "must be %s, got %s", called, typeOf(v))
	}
	return t, nil
}

func (k taker) text(v any) (string, error)  { return is[string](k.at, v, "a string") }
func (k taker) boolean(v any) (bool, error) { return is[bool](k.at, v, "a boolean") }

func (k taker) number(v any) (*decimal, error) {
	d, err := is[decimal](k.at, v, "a number")
	return &d, err
}

// exclusiveLimit is a number, except that it is a boolean in draft 4, which node's
// exclusive looks at.
func (k taker) exclusiveLimit(v any) (*decimal, error) {
	if k.draft == draft4 {
		_, err := k.boolean(v)
		return nil, err
	}
	return k.number(v)
}

func (k taker) count(v any) (int, error) {
	d, err := k.number(v)
	if err != nil {
		return 0, err
	}
	n, ok := d.count()
	if !ok {
		return 0, wrong(k.at, "must be an integer of 0 or more, got %s", clip(d.text))
	}
	return n, nil
}

// texts are different texts.
func (k taker) texts(v any) ([]string, error) {
	list, err := is[[]any](k.at, v, "an array of strings")
	if err != nil {
		return nil, err
	}
	if k.parts += len(list); k.parts > maxNodes {
		return nil, errParts()
	}
	k.cost += len(list)
	all := make([]string, 0, len(list))
	seen := make(map[string]bool, len(list))
	for i, v := range list {
		text, err := is[string](element(k.at, i), v, "a string")
		if err != nil {
			return nil, err
		}
		if seen[text] {
			return nil, wrong(element(k.at, i), "%q stands there twice", clip(text))
		}
		seen[text] = true
		all = append(all, text)
	}
	return all, nil
}

func (k taker) typeNames(v any) (types, error) {
	list, many := v.([]any)
	if !many {
		list = []any{v}
	}
	var all types
	for i, v := range list {
		at := k.at
		if many {
			at = element(at, i)
		}
		name, err := is[string](at, v, "the name of a type")
		if err != nil {
			return 0, err
		}
		t := typeNamed(name)
		if t == 0 {
			return 0, wrong(at, "%q is no type: there are %s", clip(name), everyType)
		}
		all |= t
	}
	if all == 0 {
		return 0, wrong(k.at, "names no type")
	}
	return all, nil
}

// values are what a value must be one of. Of enum and const in one schema a value
// must be of both.
func (k taker) values(v any) error {
	list, err := is[[]any](k.at, v, "an array")
	if err != nil {
		return err
	}
	allowed := make(map[string]bool, len(list))
	texts := make([]string, 0, len(list))
	for _, v := range list {
		if k.parts += size(v); k.parts > maxNodes {
			return errParts()
		}
		key := string(canonical(nil, v))
		if k.enum == nil || k.enum[key] {
			allowed[key] = true
			texts = append(texts, clip(written(v)))
		}
	}
	k.enum, k.among = allowed, clip(strings.Join(texts, ", "))
	return nil
}

// below compiles a schema that stands in a schema.
func (k taker) below(v any) (*node, error) { return k.schema(v, k.at, k.level+1) }

// list compiles a list of schemas.
func (k taker) list(v any) ([]*node, error) {
	list, err := is[[]any](k.at, v, "an array of schemas")
	if err != nil {
		return nil, err
	}
	if len(list) == 0 && !k.listed {
		return nil, wrong(k.at, "is an empty array")
	}
	all := make([]*node, len(list))
	for i, v := range list {
		if all[i], err = k.schema(v, element(k.at, i), k.level+1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// schemas compiles an object of schemas.
func (k taker) schemas(v any) (map[string]*node, error) {
	members, err := is[map[string]any](k.at, v, "an object of schemas")
	if err != nil {
		return nil, err
	}
	all := make(map[string]*node, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if all[name], err = k.schema(members[name], k.at+"/"+escape(name), k.level+1); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (k taker) patterns(v any) error {
	all, err := k.schemas(v)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p, err := k.compiler.pattern(name, k.at+"/"+escape(name))
		if err != nil {
			return err
		}
		k.patterned = append(k.patterned, patterned{p, all[name]})
	}
	return nil
}

// dependents takes what an object needs besides a member. dependencies is of both
// kinds.
func (k taker) dependents(keyword string, v any) error {
	members, err := is[map[string]any](k.at, v, "an object")
	if err != nil {
		return err
	}
	k.cost += len(members)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		d := dependent{name: name}
		inner := k
		inner.at += "/" + escape(name)
		if _, list := members[name].([]any); list && keyword == "dependencies" || keyword == "dependentRequired" {
			d.required, err = inner.texts(members[name])
		} else {
			d.schema, err = inner.below(members[name])
		}
		if err != nil {
			return err
		}
		k.dependent = append(k.dependent, d)
	}
	return nil
}

// written is a value as JSON, for people.
func written(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "?"
	}
	return string(raw)
}

// MarshalJSON writes the number as it was.
func (d decimal) MarshalJSON() ([]byte, error) { return []byte(d.text), nil }
