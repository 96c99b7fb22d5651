package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// model is the protocol as JSON Schemas: one definition for each named type.
type model struct {
	docs    *docs
	methods []protocol.Method
	defs    map[string]*jsonschema.Schema
}

const refPrefix = "#/$defs/"

// newModel infers the definitions of everything that the methods refer to.
func newModel(d *docs) (*model, error) {
	m := &model{docs: d, methods: protocol.Methods(), defs: map[string]*jsonschema.Schema{}}
	named := map[reflect.Type]bool{}
	for _, method := range m.methods {
		collect(reflect.TypeOf(method.Params), named)
		collect(reflect.TypeOf(method.Result), named)
	}
	collect(reflect.TypeFor[protocol.Error](), named)
	for t := range named {
		s, err := m.define(t, named)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		s.Description = d.types[t.Name()]
		m.defs[t.Name()] = s
	}
	return m, nil
}

// special are the types whose JSON is not that of their Go kind.
func special() map[reflect.Type]*jsonschema.Schema {
	zero := 0.0
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[protocol.RawObject](): {Type: "object"},
		reflect.TypeFor[protocol.Token]():     {Types: []string{"string", "integer"}},
		reflect.TypeFor[protocol.Duration]():  {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "number", Minimum: &zero}}},
		reflect.TypeFor[protocol.Size]():      {AnyOf: []*jsonschema.Schema{{Type: "integer", Minimum: &zero}, {Type: "string", Pattern: "^[0-9]+[kmgKMG]?$"}}},
		reflect.TypeFor[json.RawMessage]():    {},
		reflect.TypeFor[[]byte]():             {Type: "string", ContentEncoding: "base64"},
		reflect.TypeFor[time.Time]():          {Type: "string", Format: "date-time"},
	}
}

// collect finds the protocol's named types that t is made of.
func collect(t reflect.Type, named map[reflect.Type]bool) {
	if t == nil || named[t] {
		return
	}
	inSpecial := special()[t] != nil
	if t.PkgPath() == reflect.TypeFor[protocol.Method]().PkgPath() && t.Name() != "" {
		named[t] = true
	}
	if inSpecial {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		collect(t.Elem(), named)
	case reflect.Map:
		collect(t.Elem(), named)
	case reflect.Struct:
		for i := range t.NumField() {
			collect(t.Field(i).Type, named)
		}
	}
}

// define makes the definition of one type; the other named ones it refers to.
func (m *model) define(t reflect.Type, named map[reflect.Type]bool) (*jsonschema.Schema, error) {
	if s := special()[t]; s != nil {
		return s, nil
	}
	if t.Kind() != reflect.Struct {
		s, err := jsonschema.ForType(t, nil)
		if err != nil {
			return nil, err
		}
		s.Enum = wordsOf(t)
		return s, nil
	}
	known := special()
	for other := range named {
		if other != t {
			known[other] = &jsonschema.Schema{Ref: refPrefix + other.Name()}
		}
	}
	s, err := jsonschema.ForType(t, &jsonschema.ForOptions{TypeSchemas: known})
	if err != nil {
		return nil, err
	}
	s.AdditionalProperties = nil // unknown members are ignored
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		p := s.Properties[name]
		p.Description = m.docs.fields[t.Name()][field.Name]
		withoutNull(p, field.Type.Kind() == reflect.Pointer && slices.Contains(s.Required, name))
	}
	return s, nil
}

// withoutNull takes back that a Go value can be nil: a member that may be
// missing is left out instead, and a list is empty. Nullable members are the
// required ones that are pointers.
func withoutNull(s *jsonschema.Schema, nullable bool) {
	if s.Items != nil {
		withoutNull(s.Items, false)
	}
	if nullable || !slices.Contains(s.Types, "null") {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" })
	s.Types = nil
	switch len(rest) {
	case 0:
	case 1:
		s.Type = rest[0]
	default:
		s.Types = rest
	}
}

// wordsOf are the values that a type's Values method lists; nil for others.
func wordsOf(t reflect.Type) []any {
	values := reflect.Zero(t).MethodByName("Values")
	if !values.IsValid() {
		return nil
	}
	list := values.Call(nil)[0]
	out := make([]any, list.Len())
	for i := range out {
		if v := list.Index(i); v.CanInt() {
			out[i] = v.Int()
		} else {
			out[i] = v.String()
		}
	}
	return out
}

// ref is the schema of a method's parameters or result; nil for none.
func ref(v any) any {
	if v == nil {
		return nil
	}
	return map[string]string{"$ref": refPrefix + reflect.TypeOf(v).Name()}
}

// schema is the whole protocol as one JSON Schema document.
func (m *model) schema() ([]byte, error) {
	type methodEntry struct {
		Name         string             `json:"name"`
		Direction    protocol.Direction `json:"direction"`
		Notification bool               `json:"notification"`
		Params       any                `json:"params,omitempty"`
		Result       any                `json:"result,omitempty"`
		Description  string             `json:"description"`
	}
	type codeEntry struct {
		Name        string `json:"name"`
		Code        int    `json:"code"`
		Description string `json:"description,omitempty"`
	}
	methods := make([]methodEntry, len(m.methods))
	for i, method := range m.methods {
		methods[i] = methodEntry{method.Name, method.Direction, method.Notification, ref(method.Params), ref(method.Result), method.Doc}
	}
	codes := make([]codeEntry, len(m.docs.codes))
	for i, c := range m.docs.codes {
		codes[i] = codeEntry{c.name, c.value, c.doc}
	}
	root := &jsonschema.Schema{
		Schema:      "https://json-schema.org/draft/2020-12/schema",
		Title:       fmt.Sprintf("The editor protocol of Caisson, version %d", protocol.Version),
		Description: "Generated from the Go types in rpc/protocol. The definitions are the data; x-methods says which method carries what, x-errorCodes what the numeric codes mean.",
		Defs:        m.defs,
		Extra:       map[string]any{"x-methods": methods, "x-errorCodes": codes},
	}
	return encode(root)
}

// encode writes a document the way that it is checked in.
func encode(document any) ([]byte, error) {
	raw, err := json.Marshal(document)
	if err != nil {
		return nil, err
	}
	out := jsontext.Value(raw)
	err = out.Format(jsontext.Multiline(true), jsontext.WithIndent("  "), jsontext.EscapeForHTML(false))
	return append(out, '\n'), err
}

// names are the definitions' names, sorted.
func (m *model) names() []string { return slices.Sorted(maps.Keys(m.defs)) }
