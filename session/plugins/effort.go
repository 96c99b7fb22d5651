package plugins

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// effort is what the check that goes on may still do. A schema of a few lines can
// ask for more steps than any machine does: two alternatives that both refer to
// the next two, forty times over. Validation cannot be cancelled, so every schema
// object is made to count before it looks at anything below it.
type effort struct {
	left int
	// programs is how many instructions all its patterns have, while it is compiled.
	programs int
}

// errEffort ends a validation from within.
var errEffort = errors.New("too much to check")

// spend takes n steps, and ends the validation when they are not left.
func (e *effort) spend(n int) {
	if e.left -= n; e.left < 0 {
		panic(errEffort)
	}
}

// walk visits every schema object of a document.
type walk struct {
	effort   *effort
	compiler *jsonschema.Compiler
	nodes    int
	seen     map[string]bool // pointers of schema objects
	anchors  []string
	refs     []string
}

// Where schemas stand in a schema.
var (
	schemaMembers = [...]string{
		"additionalProperties", "additionalItems", "unevaluatedProperties", "unevaluatedItems", "propertyNames",
		"contains", "not", "if", "then", "else", "contentSchema", "items",
	}
	schemaLists = [...]string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaMaps  = [...]string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// refused are keywords whose target is not known before the arguments are, or that
// give references another meaning.
var refused = [...]string{"$dynamicRef", "$recursiveRef", "$vocabulary"}

// schema makes one schema object count, and those below it.
func (w *walk) schema(s map[string]any, at string, level int) error {
	if level > maxSchemaDepth {
		return fmt.Errorf("nests deeper than %d levels", maxSchemaDepth)
	}
	if w.nodes += 1 + len(s); w.nodes > maxNodes {
		return fmt.Errorf("has more than %d parts", maxNodes)
	}
	w.seen[at] = true
	for _, name := range refused {
		if _, is := s[name]; is {
			return fmt.Errorf("has %s at %q, which is not supported", name, at)
		}
	}
	if _, is := s["$id"]; is && at != "" {
		return fmt.Errorf("has a second $id at %q, which is not supported", at)
	}
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if anchor, ok := s[name].(string); ok {
			w.anchors = append(w.anchors, anchor)
		}
	}
	if ref, ok := s["$ref"].(string); ok {
		w.refs = append(w.refs, ref)
	}
	weight := own(s)
	below := func(v any, at string) error {
		object, ok := v.(map[string]any)
		if !ok {
			if _, boolean := v.(bool); boolean {
				w.seen[at] = true
			}
			return nil // or what the compiler refuses
		}
		weight += own(object)
		return w.schema(object, at, level+1)
	}
	for _, name := range schemaMembers {
		if err := below(s[name], at+"/"+name); err != nil {
			return err
		}
	}
	for _, name := range schemaLists {
		list, _ := s[name].([]any)
		for i, v := range list {
			if err := below(v, at+"/"+name+"/"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
	}
	for _, name := range schemaMaps {
		members, _ := s[name].(map[string]any)
		for key, v := range members {
			if err := below(v, at+"/"+name+"/"+escape(key)); err != nil {
				return err
			}
		}
	}
	// The keyword is looked at after those that end in one comparison and before all
	// that look further. Formats of the schema itself are notes only.
	s["format"] = w.format(weight)
	return nil
}

func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }

// own is what a schema object costs that looks no further: its keywords, and the
// values that it compares with.
func own(s map[string]any) int {
	n := 10 + len(s) // what it costs to look at it at all, and to say that it does not fit
	for _, name := range []string{"enum", "required"} {
		list, _ := s[name].([]any)
		n += len(list)
	}
	n += size(s["const"]) + size(s["enum"])
	return n
}

// size is how many values there are in v.
func size(v any) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			n += 1 + size(e)
		}
	case map[string]any:
		for _, e := range v {
			n += 1 + size(e)
		}
	}
	return n
}

// format is a format that takes the weight, for each member that is looked at.
func (w *walk) format(weight int) string {
	name := "caisson-effort-" + strconv.Itoa(weight)
	w.compiler.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
		n := 1
		switch v := v.(type) {
		case []any:
			n += len(v)
		case map[string]any:
			n += len(v)
		case string:
			n += len(v) / 64 // characters are counted
		}
		w.effort.spend(weight * n)
		return nil
	}})
	return name
}

// references checks that every reference leads to a schema object that counts.
func (w *walk) references() error {
	for _, ref := range w.refs {
		place, local := strings.CutPrefix(ref, "#")
		if plain, err := url.PathUnescape(place); err == nil {
			place = plain
		}
		switch {
		case !local:
			return fmt.Errorf("refers to %q: references must stay within it, and begin with #", clip(ref))
		case place == "" || w.seen[place]:
		case !strings.HasPrefix(place, "/"):
			if !slices.Contains(w.anchors, place) {
				return fmt.Errorf("refers to %q, which is not there", clip(ref))
			}
		default:
			return fmt.Errorf("refers to %q, where no schema is: put it under $defs", clip(ref))
		}
	}
	return nil
}

// pattern is a regular expression that counts.
type pattern struct {
	*regexp.Regexp
	effort *effort
	cost   int // of 8 bytes of text
}

const (
	// maxInstructions is how large a regular expression may become, in instructions
	// of its automaton. It takes a step for each of them for each byte of text.
	maxInstructions = 4096
	// maxPrograms is how large all of a schema may become together. Each is compiled
	// when the schema is checked, and again when it is used.
	maxPrograms = 128 << 10
)

// regexp compiles a pattern for the compiler.
func (e *effort) regexp(s string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if e.programs += len(prog.Inst); len(prog.Inst) > maxInstructions || e.programs > maxPrograms {
		return nil, fmt.Errorf("the pattern %s is too large", clip(s))
	}
	re, err := regexp.Compile(s)
	if err != nil {
		return nil, err
	}
	return &pattern{re, e, len(prog.Inst)}, nil
}

// MatchString reports whether the text has a match.
func (p *pattern) MatchString(s string) bool {
	p.effort.spend(1 + p.cost*(len(s)/8))
	return p.Regexp.MatchString(s)
}
