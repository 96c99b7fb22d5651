package plugins

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Schema is the compiled JSON Schema of a tool's arguments. Its methods may be
// called concurrently; checks of one schema take turns, and each is short.
type Schema struct {
	mu       sync.Mutex
	compiled *jsonschema.Schema
	effort   *effort
	most     int // effort of one check; less in tests
}

// Fault is one thing that is wrong with a call's arguments.
type Fault struct {
	// Path is a JSON pointer into the arguments; "" for the arguments themselves.
	Path string
	// Message says what is wrong there.
	Message string
}

// CompileSchema compiles a JSON Schema, of draft 2020-12 unless it says another
// one. Nothing is ever loaded: references stay within the schema. Formats are
// notes, as the draft has it, and are not checked. The error continues a sentence
// that begins with the schema.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	e := &effort{}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nothing{})
	c.UseRegexpEngine(e.regexp)
	w := walk{effort: e, compiler: c, seen: map[string]bool{}}
	root, ok := doc.(map[string]any)
	if !ok {
		return nil, errors.New("is not an object")
	}
	if err := w.schema(root, "", 0); err != nil {
		return nil, err
	}
	if err := w.references(); err != nil {
		return nil, err
	}
	c.AssertFormat()
	if err := c.AddResource(location, root); err != nil {
		return nil, fmt.Errorf("cannot be used: %w", err)
	}
	compiled, err := c.Compile(location)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %s", compileFault(err))
	}
	return &Schema{compiled: compiled, effort: e, most: maxEffort}, nil
}

// location is what the compiler calls the schema. Nothing is there.
const location = "caisson:schema"

// nothing is the loader of what is never loaded.
type nothing struct{}

// Load refuses.
func (nothing) Load(url string) (any, error) {
	return nil, fmt.Errorf("it refers to %s, and nothing is loaded from elsewhere", clip(url))
}

// compileFault is the first thing that is wrong with a schema.
func compileFault(err error) string {
	var invalid *jsonschema.SchemaValidationError
	var inner *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &inner) {
		if all := faults(inner); len(all) > 0 {
			return all[0].String()
		}
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		err = load.Err
	}
	return clip(err.Error())
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
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(arguments))
	if err != nil {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments are not JSON: %w", err).WithPath("arguments")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.effort.left = s.most
	defer func() {
		if p := recover(); p != nil {
			if p != any(errEffort) {
				panic(p)
			}
			all, err = nil, tool.Errorf(tool.InvalidParams, "the arguments are too large to be checked against the schema of the tool").WithPath("arguments")
		}
	}()
	var wrong *jsonschema.ValidationError
	if err := s.compiled.Validate(v); errors.As(err, &wrong) {
		return faults(wrong), nil
	} else if err != nil {
		return nil, tool.Errorf(tool.Internal, "the arguments cannot be checked: %w", err)
	}
	return nil, nil
}

// depth is how deep a value nests. It need not know more of the grammar than what
// hides brackets.
func depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			now++
			deepest = max(deepest, now)
		case b == '}' || b == ']':
			now--
		}
	}
	return deepest
}

// faults are the innermost causes, sorted by place.
func faults(e *jsonschema.ValidationError) []Fault {
	var all []Fault
	printer := message.NewPrinter(language.English)
	var collect func(*jsonschema.ValidationError)
	collect = func(e *jsonschema.ValidationError) {
		if len(all) >= maxFaults {
			return
		}
		switch e.ErrorKind.(type) {
		case *kind.AnyOf, *kind.OneOf, *kind.Not:
			// Each alternative fails for a reason of its own, of which one at most
			// matters; that none fits is what to say, and the reasons after it.
			all = append(all, Fault{pointer(e.InstanceLocation), clip(e.ErrorKind.LocalizedString(printer))})
		default:
			if len(e.Causes) == 0 {
				all = append(all, Fault{pointer(e.InstanceLocation), clip(e.ErrorKind.LocalizedString(printer))})
				return
			}
		}
		for _, cause := range e.Causes {
			collect(cause)
		}
	}
	collect(e)
	slices.SortStableFunc(all, func(a, b Fault) int { return strings.Compare(a.Path, b.Path) })
	return slices.Compact(all)
}

func pointer(tokens []string) string {
	var b strings.Builder
	for _, t := range tokens {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(t))
	}
	return clip(b.String())
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
