package plugins

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Schema is the compiled JSON Schema of a tool's arguments. Its methods may be
// called concurrently.
type Schema struct {
	resolved *jsonschema.Resolved
	effort   *effort
	most     int // effort of one check; less in tests
}

// Fault is what is wrong with a call's arguments.
type Fault struct {
	// Path is a JSON pointer into the arguments, "" for the arguments themselves. An
	// element of an array, or a member that the schema does not name, is "*".
	Path string
	// Message says what is wrong there.
	Message string
}

// CompileSchema compiles a JSON Schema of draft 2020-12 or draft-07, the former
// unless it says another one. Nothing is ever loaded: references stay within the
// schema. Formats are notes, as the drafts have it, and are not checked. What could
// not be used in a call is refused here. The error continues a sentence that begins
// with the schema.
func CompileSchema(raw json.RawMessage) (*Schema, error) {
	if deepest, _ := shape(raw); deepest > maxSchemaDepth {
		return nil, fmt.Errorf("nests deeper than %d levels", maxSchemaDepth)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("is not JSON: %w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, errors.New("is not an object")
	}
	if size(v) > maxParts {
		return nil, fmt.Errorf("has more than %d parts", maxParts)
	}
	var root jsonschema.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %s", mistyped(err))
	}
	effort, err := survey(&root)
	if err != nil {
		return nil, err
	}
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("is not a JSON Schema: %s", clip(err.Error()))
	}
	return &Schema{resolved, effort, maxEffort}, nil
}

// mistyped says which keyword has a value of a wrong type.
func mistyped(err error) string {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return clip(err.Error())
	}
	keyword := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
	if keyword == "" {
		return "a schema must be an object or a boolean, got " + clip(wrong.Value)
	}
	return fmt.Sprintf("%s cannot be of type %s", clip(keyword), clip(wrong.Value))
}

// String is the fault as a line for people and models.
func (f Fault) String() string { return fmt.Sprintf("at %s: %s", cmp.Or(f.Path, "/"), f.Message) }

// Check says what is wrong with the arguments, nil for nothing; of several faults it
// tells one. An error is [tool.InvalidParams]: they cannot be checked, being no JSON,
// or too much of it for this schema.
func (s *Schema) Check(arguments json.RawMessage) (*Fault, error) {
	switch deepest, values := shape(arguments); {
	case deepest > maxArgumentsDepth:
		return nil, tool.Errorf(tool.InvalidParams, "the arguments nest deeper than %d levels", maxArgumentsDepth).WithPath("arguments")
	case values > s.most/valueEffort:
		return nil, tooMuch()
	}
	var v any
	if err := json.Unmarshal(arguments, &v); err != nil {
		return nil, tool.Errorf(tool.InvalidParams, "the arguments cannot be checked against the schema of the tool: %w", err).WithPath("arguments")
	}
	if !s.effort.allows(v, s.most) {
		return nil, tooMuch()
	}
	if err := s.resolved.Validate(v); err != nil {
		return s.faultOf(err), nil
	}
	return nil, nil
}

func tooMuch() error {
	return tool.Errorf(tool.InvalidParams, "to check the arguments against the schema of the tool would take too much: they are too large, or it has too many alternatives").WithPath("arguments")
}

// faultOf reads what the library says, level by level: each one names the schema that
// it was at by its JSON pointer, and wraps what the next one says.
func (s *Schema) faultOf(err error) *Fault {
	var path strings.Builder
	above := ""
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			break
		}
		at := strings.TrimPrefix(strings.TrimSuffix(err.Error(), ": "+inner.Error()), "validating ")
		if step, below := strings.CutPrefix(at, above+"/"); below {
			path.WriteString(into(step))
		}
		if above = at; !strings.HasPrefix(at, "/") {
			above = "" // the root has a name instead
		}
		err = inner
	}
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if at := s.effort.places[above]; at != nil {
		text = spelled(text, at)
	}
	return &Fault{clip(path.String()), clip(strings.ReplaceAll(text, "<anonymous schema>", "…"))}
}

// spelled says which schemas a value should have fitted, or not, where the library says
// that it did not and no more.
func spelled(text string, at *jsonschema.Schema) string {
	keyword, said, _ := strings.Cut(text, ": ")
	switch {
	case keyword == "oneOf" && strings.HasPrefix(said, "validated"):
		return "oneOf: must fit only one of " + written(at.OneOf...)
	case keyword == "oneOf":
		return "oneOf: must fit one of " + written(at.OneOf...)
	case keyword == "not" && written(at.Not) == "true": // which is what false is
		return "nothing may be there"
	case keyword == "not":
		return "not: must not fit " + written(at.Not)
	case keyword == "contains":
		return "contains: must have an item that fits " + written(at.Contains)
	}
	return text
}

// written is schemas as JSON, as far as there is room for each.
func written(all ...*jsonschema.Schema) string {
	texts := make([]string, len(all))
	for i, s := range all {
		text, err := json.Marshal(s)
		if err != nil {
			text = []byte("…") // it came as JSON
		}
		texts[i] = tool.Clip(string(text), maxFault/(len(all)+1))
	}
	return strings.Join(texts, ", ")
}

// into is where a step from one schema to another leads to in the value, "" for the
// same place.
func into(step string) string {
	keyword, rest, more := strings.Cut(step, "/")
	switch keyword {
	case "properties", "prefixItems":
		return "/" + rest
	case "items":
		if more {
			return "/" + rest
		}
		return "/*"
	case "additionalProperties", "patternProperties", "unevaluatedProperties",
		"additionalItems", "unevaluatedItems":
		return "/*"
	}
	return ""
}

// shape is how deep a value nests, and how many values it has, about. It need not know
// more of the grammar than what hides brackets.
func shape(raw []byte) (deepest, values int) {
	now, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == ',':
			values++
		case b == '{' || b == '[':
			now++
			values++
			deepest = max(deepest, now)
		case b == '}' || b == ']':
			now--
		}
	}
	return deepest, values
}

// clip cuts what quotes somebody's text.
func clip(s string) string { return tool.Clip(s, maxFault) }

// Refuse is the result that tells a model what is wrong with its arguments. MCP
// has this be a result, not an error of the protocol, so that the model mends it.
func Refuse(name string, fault *Fault) tool.Result {
	return tool.Failed(fmt.Sprintf("The arguments of %s are not what it takes; it was not called.\n- %s", name, fault))
}
