package plugins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Schema is the compiled JSON Schema of a tool's arguments. Its methods may be
// called concurrently.
type Schema struct {
	root        *node
	unevaluated bool
	most        int // effort of one check; less in tests
}

// Fault is one thing that is wrong with a call's arguments.
type Fault struct {
	// Path is a JSON pointer into the arguments; "" for the arguments themselves.
	Path string
	// Message says what is wrong there, and what would be right.
	Message string
}

// CompileSchema compiles a JSON Schema, of draft 2020-12 unless it says another
// one. Nothing is ever loaded: references stay within the schema. Formats are
// notes, as the draft has it, and are not checked. What could not be used in a call
// is refused here: the error names the keyword by its JSON pointer, and continues a
// sentence that begins with the schema.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	if depth(raw) > maxSchemaText {
		return nil, fmt.Errorf("nests deeper than %d levels", maxSchemaDepth)
	}
	v, err := decode(raw)
	if err != nil {
		return nil, fmt.Errorf("is %w", err)
	}
	c := compiler{nodes: map[string]*node{}, anchors: map[string]*node{}}
	root, err := c.document(v)
	if err != nil {
		return nil, err
	}
	return &Schema{root, c.unevaluated, maxEffort}, nil
}

// String is the fault as a line for people and models.
func (f Fault) String() string { return fmt.Sprintf("at %s: %s", cmp.Or(f.Path, "/"), f.Message) }

// Check says what is wrong with the arguments, each fault with its place: at most
// 20. An error is [tool.InvalidParams]: they cannot be checked, being no JSON, or
// too much of it for this schema.
func (s *Schema) Check(arguments json.RawMessage) (all []Fault, err error) {
	if depth(arguments) > maxArgumentsDepth {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments nest deeper than %d levels", maxArgumentsDepth).WithPath("arguments")
	}
	v, err := decode(arguments)
	if err != nil {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments cannot be checked against the schema of the tool: %w", err).WithPath("arguments")
	}
	defer func() {
		if p := recover(); p != nil {
			if p != any(errEffort) {
				panic(p)
			}
			all, err = nil, tool.Errorf(tool.InvalidParams, "the arguments are too large to be checked against the schema of the tool").WithPath("arguments")
		}
	}()
	k := check{left: s.most, unevaluated: s.unevaluated}
	var told faults
	if k.fits(s.root, v, nil, &told, nil) {
		return nil, nil
	}
	slices.SortStableFunc(told.all, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(told.all), nil
}

// clip cuts what quotes somebody's text.
func clip(s string) string {
	if len(s) <= maxFault {
		return s
	}
	return strings.ToValidUTF8(s[:maxFault], "") + "…"
}

// Refuse is the result that tells a model what is wrong with its arguments. MCP
// has this be a result, not an error of the protocol, so that the model mends it.
func Refuse(name string, faults []Fault) tool.Result {
	var b strings.Builder
	fmt.Fprintf(&b, "The arguments of %s are not what it takes; it was not called.", name)
	for _, f := range faults {
		b.WriteString("\n- " + f.String())
	}
	if len(faults) == maxFaults {
		b.WriteString("\n- there may be more, from the " + strconv.Itoa(maxFaults+1) + "th on")
	}
	return tool.Failed(b.String())
}
