package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
)

// ListRequest is the standard input of the action list.
func ListRequest() []byte { return []byte(`{"action":"list"}` + "\n") }

// listed is one tool as a program writes it: in snake case, or as MCP does.
type listed struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	InputSchema jsontext.Value `json:"input_schema"`
	CamelSchema jsontext.Value `json:"inputSchema"`
	Annotations annotations    `json:"annotations"`
}

type annotations struct {
	ReadOnly        bool `json:"read_only"`
	CamelReadOnly   bool `json:"readOnly"`
	ReadOnlyHint    bool `json:"readOnlyHint"`
	Destructive     bool `json:"destructive"`
	DestructiveHint bool `json:"destructiveHint"`
}

// ParseList reads the answer to the action list: descriptions in the group
// plugins, in the order of the answer. The error says what is wrong with it, in
// words for whoever wrote the program.
func ParseList(answer []byte) ([]tool.Description, error) {
	if len(answer) > MaxList {
		return nil, fmt.Errorf("it answered list with more than %d bytes", MaxList)
	}
	var list struct {
		Tools *[]listed `json:"tools"`
	}
	if err := decode("list", answer, &list); err != nil {
		return nil, err
	}
	switch {
	case list.Tools == nil:
		return nil, errors.New(`it answered list without the member "tools"`)
	case len(*list.Tools) == 0:
		return nil, errors.New("it lists no tool")
	case len(*list.Tools) > MaxTools:
		return nil, fmt.Errorf("it lists %d tools, and may have %d", len(*list.Tools), MaxTools)
	}
	all := make([]tool.Description, 0, len(*list.Tools))
	seen := map[string]bool{}
	for i, l := range *list.Tools {
		d, err := l.describe()
		if err != nil {
			return nil, fmt.Errorf("tool %d of its list: %w", i+1, err)
		}
		if seen[d.Name] {
			return nil, fmt.Errorf("it lists two tools called %q", d.Name)
		}
		seen[d.Name] = true
		all = append(all, d)
	}
	return all, nil
}

// decode reads one JSON object, the answer to the action.
func decode(action string, answer []byte, into any) error {
	answer = bytes.TrimSpace(answer)
	if len(answer) == 0 {
		return fmt.Errorf("it answered %s with nothing", action)
	}
	if err := shallow(answer); err != nil {
		return fmt.Errorf("it answered %s with what is not one JSON value: %w: %s", action, err, quoted(answer))
	}
	if err := jsonv2.Unmarshal(answer, into); err != nil {
		var wrong *jsonv2.SemanticError
		if errors.As(err, &wrong) && wrong.JSONPointer != "" {
			return fmt.Errorf("its answer to %s has something else at %s than belongs there", action, clip(string(wrong.JSONPointer)))
		}
		return fmt.Errorf("it answered %s with something else than the object that belongs there: %s", action, quoted(answer))
	}
	return nil
}

// shallow checks that raw is one JSON value that does not nest too deep.
func shallow(raw []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(raw))
	for depth := -1; depth != 0; depth = d.StackDepth() {
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		if d.StackDepth() > maxDepth {
			return fmt.Errorf("it nests deeper than %d levels", maxDepth)
		}
	}
	if rest := bytes.TrimSpace(raw[d.InputOffset():]); len(rest) > 0 {
		return errors.New("something follows the value")
	}
	return nil
}

// quoted is the head of an answer for an error.
func quoted(answer []byte) string { return fmt.Sprintf("%q", clip(string(answer))) }

// clip cuts a text of a program down to what an error may hold.
func clip(s string) string { return tool.Clip(s, maxQuoted) }

// isToolName reports whether every model's interface takes it as the name of a tool.
func isToolName(s string) bool {
	if len(s) == 0 || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '_' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func (l listed) describe() (tool.Description, error) {
	d := tool.Description{
		Name: l.Name, Group: tool.GroupPlugins, Description: strings.TrimSpace(l.Description),
		InputSchema: json.RawMessage(l.InputSchema),
		Annotations: tool.Annotations{
			ReadOnly:    l.Annotations.ReadOnly || l.Annotations.CamelReadOnly || l.Annotations.ReadOnlyHint,
			Destructive: l.Annotations.Destructive || l.Annotations.DestructiveHint,
		},
	}
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(l.CamelSchema)
	}
	switch {
	case !isToolName(d.Name):
		return d, fmt.Errorf("%q cannot be its name: a name begins with a letter and has at most 64 letters, digits, _ and -", clip(d.Name))
	case d.Description == "":
		return d, fmt.Errorf("%s has no description, and a model cannot know what it is for", d.Name)
	case len(d.Description) > maxDescription:
		return d, fmt.Errorf("the description of %s has %d bytes, and may have %d", d.Name, len(d.Description), maxDescription)
	case strings.ContainsFunc(d.Description, unprintable):
		return d, fmt.Errorf("the description of %s holds control characters", d.Name)
	case d.Annotations.ReadOnly && d.Annotations.Destructive:
		return d, fmt.Errorf("%s says that it is read-only and destructive", d.Name)
	case l.InputSchema != nil && l.CamelSchema != nil:
		return d, fmt.Errorf("%s has both input_schema and inputSchema", d.Name)
	case d.InputSchema == nil:
		d.InputSchema = json.RawMessage(`{"type":"object"}`)
		return d, nil
	case len(d.InputSchema) > maxSchema:
		return d, fmt.Errorf("the schema of %s has %d bytes, and may have %d", d.Name, len(d.InputSchema), maxSchema)
	}
	var schema struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(d.InputSchema, &schema); err != nil || schema.Type != "object" {
		return d, fmt.Errorf(`the schema of %s must be a JSON Schema with "type": "object"`, d.Name)
	}
	return d, nil
}

// unprintable is what could play with a person's terminal.
func unprintable(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r' }
