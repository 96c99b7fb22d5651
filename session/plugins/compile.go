package plugins

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// node is one schema object, compiled.
type node struct {
	at string // JSON pointer to it
	// cost is what looking at it takes that looks no further, and at each member of
	// a value.
	cost  int
	never bool // the schema false

	ref                                        *node
	refers                                     string // the text of $ref
	types                                      types  // 0 for every type
	enum                                       map[string]bool
	among                                      string // the values of enum, for people
	minimum, maximum, above, below, multipleOf *decimal
	length, items, members, contained          span
	pattern                                    *pattern
	unique                                     bool
	prefix                                     []*node
	rest, contains, unevaluatedItems           *node
	properties                                 map[string]*node
	names                                      []string // of properties, sorted
	patterned                                  []patterned
	containsEvaluates                          bool
	additional, propertyNames                  *node
	unevaluatedProperties                      *node
	required                                   []string
	dependent                                  []dependent
	allOf, anyOf, oneOf                        []*node
	not, condition, then, otherwise            *node

	// While it is compiled: whether additionalItems apply, and what is to be known of
	// references.
	listed bool
	state  visit
	chain  int
}

// span is how many of something there may be.
type span struct{ least, most int } // most is -1 for no limit

// patterned is what properties are whose names match.
type patterned struct {
	pattern *pattern
	schema  *node
}

// dependent is what an object needs that has the member of the name.
type dependent struct {
	name     string
	required []string
	schema   *node // or nil
}

// compiler compiles the objects of one schema.
type compiler struct {
	draft    draft
	parts    int
	programs int // instructions of all patterns
	nodes    map[string]*node
	order    []*node
	anchors  map[string]*node
	// unevaluated says that what has been looked at must be kept account of.
	unevaluated bool
}

// wrong is a fault of a schema.
func wrong(at, format string, args ...any) error {
	return fmt.Errorf("is not a JSON Schema: at %s: %s", clip(at), fmt.Sprintf(format, args...))
}

// unsupported are keywords whose target is not known before the arguments are, or
// that give references another meaning.
var unsupported = [...]string{"$dynamicRef", "$recursiveRef", "$vocabulary"}

// document compiles a whole schema.
func (c *compiler) document(v any) (*node, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("is not an object")
	}
	var err error
	if c.draft, err = draftOf(object); err != nil {
		return nil, err
	}
	root, err := c.schema(object, "", 0)
	if err != nil {
		return nil, err
	}
	for _, n := range c.order {
		if n.refers == "" {
			continue
		}
		if n.ref, err = c.target(n); err != nil {
			return nil, err
		}
	}
	for _, n := range c.order {
		if err := n.ends(nil); err != nil {
			return nil, err
		}
	}
	return root, nil
}

// schema compiles one schema object and those below it.
func (c *compiler) schema(v any, at string, level int) (*node, error) {
	n := &node{
		at: at, cost: 1, length: span{0, -1}, items: span{0, -1}, members: span{0, -1}, contained: span{1, -1},
	}
	c.nodes[at] = n
	c.order = append(c.order, n)
	switch {
	case level > maxSchemaDepth:
		return nil, fmt.Errorf("nests deeper than %d levels", maxSchemaDepth)
	case len(at) > maxPointer:
		return nil, fmt.Errorf("has names of more than %d characters within each other at %s", maxPointer, clip(at))
	}
	switch v := v.(type) {
	case bool:
		c.parts++
		n.never = !v
	case map[string]any:
		c.parts += 1 + len(v)
		n.cost = 10 + len(v)
		if err := c.object(n, v, level); err != nil {
			return nil, err
		}
	default:
		return nil, wrong(at, "a schema must be an object or a boolean, got %s", typeOf(v))
	}
	if c.parts > maxNodes {
		return nil, errParts()
	}
	return n, nil
}

func errParts() error { return fmt.Errorf("has more than %d parts", maxNodes) }

func (c *compiler) object(n *node, s map[string]any, level int) error {
	for _, name := range unsupported {
		if _, is := s[name]; is {
			return fmt.Errorf("has %s at %q, which is not supported", name, clip(n.at))
		}
	}
	if _, is := s[c.draft.id()]; is && n.at != "" {
		return fmt.Errorf("has a second %s at %q, which is not supported", c.draft.id(), clip(n.at))
	}
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if !c.draft.has(name) {
			continue
		}
		k := taker{compiler: c, node: n, at: n.at + "/" + escape(name), level: level}
		if err := k.keyword(name, s[name]); err != nil {
			return err
		}
	}
	if c.draft <= draft2019 && !n.listed {
		// Of these drafts additionalItems goes with a list of items only.
		n.rest = n.chosen(s, c)
	}
	if c.draft == draft4 {
		n.exclusive(s)
	}
	n.containsEvaluates = c.draft >= draft2020
	if c.draft <= draft7 && n.refers != "" {
		// The others stand there for references to find.
		*n = node{at: n.at, cost: n.cost, refers: n.refers, length: span{0, -1}, items: span{0, -1}, members: span{0, -1}, contained: span{1, -1}}
	}
	return nil
}

// chosen is the schema of all items.
func (n *node) chosen(s map[string]any, c *compiler) *node {
	if _, is := s["items"]; is {
		return c.nodes[n.at+"/items"]
	}
	return nil
}

// exclusive has draft 4's booleans make its limits exclusive.
func (n *node) exclusive(s map[string]any) {
	if s["exclusiveMinimum"] == true {
		n.minimum, n.above = nil, n.minimum
	}
	if s["exclusiveMaximum"] == true {
		n.maximum, n.below = nil, n.maximum
	}
}

// target finds what a reference leads to.
func (c *compiler) target(n *node) (*node, error) {
	place, local := strings.CutPrefix(n.refers, "#")
	if plain, err := url.PathUnescape(place); err == nil {
		place = plain
	}
	if !local {
		return nil, fmt.Errorf("refers to %q at %q: references must stay within it, and begin with #", clip(n.refers), clip(n.at+"/$ref"))
	}
	if to := c.nodes[place]; to != nil {
		return to, nil
	}
	if strings.HasPrefix(place, "/") {
		return nil, fmt.Errorf("refers to %q at %q, where no schema is: put it under $defs", clip(n.refers), clip(n.at+"/$ref"))
	}
	if to := c.anchors[place]; to != nil {
		return to, nil
	}
	return nil, fmt.Errorf("refers to %q at %q, which is not there", clip(n.refers), clip(n.at+"/$ref"))
}

// visit is how far a schema object has been looked at for circles.
type visit int

const (
	unseen visit = iota
	entered
	left
)

// ends checks that looking at a value comes to an end: what looks at the same value
// again must not come back to itself, and must not go on for too long, since it
// is done by recursion. above are those that led here.
func (n *node) ends(above []*node) error {
	switch n.state {
	case left:
		return nil
	case entered:
		circle := above[slices.Index(above, n):]
		at := circle[slices.IndexFunc(circle, func(m *node) bool { return m.ref != nil })].at
		return fmt.Errorf("refers to itself at %q, without a step into the arguments: no check of it would end", clip(at+"/$ref"))
	}
	n.state = entered
	above = append(above, n)
	for _, next := range n.inPlace() {
		if err := next.ends(above); err != nil {
			return err
		}
		n.chain = max(n.chain, 1+next.chain)
	}
	n.state = left
	if n.chain > maxChain {
		return fmt.Errorf("has more than %d references and alternatives within each other at %q", maxChain, clip(n.at))
	}
	return nil
}

// inPlace are the schemas that look at the same value.
func (n *node) inPlace() []*node {
	all := slices.Concat(n.allOf, n.anyOf, n.oneOf, []*node{n.ref, n.not, n.condition, n.then, n.otherwise})
	for _, d := range n.dependent {
		all = append(all, d.schema)
	}
	return slices.DeleteFunc(all, func(m *node) bool { return m == nil })
}

// escape writes a name as a part of a JSON pointer.
func escape(token string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(token) }

// at is the pointer to an element of what is at a pointer.
func element(at string, i int) string { return at + "/" + strconv.Itoa(i) }
