package main

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// typescript writes the protocol as TypeScript: an interface or type for each
// definition, the error codes, and maps from method to parameters and result.
func (m *model) typescript() []byte {
	w := &writer{}
	w.line("// Generated from the Go types in rpc/protocol by make generate. Do not edit.")
	w.line("")
	w.doc("", "The version of the protocol that these types are of.")
	w.line("export const protocolVersion = %d;", protocol.Version)
	for _, name := range m.names() {
		w.line("")
		w.definition(name, m.defs[name])
	}
	w.line("")
	w.doc("", "The numeric codes of error answers. ErrorData.kind says more.")
	w.line("export const ErrorCodes = {")
	for _, c := range m.docs.codes {
		w.doc("  ", c.doc)
		w.line("  %s: %d,", c.name, c.value)
	}
	w.line("} as const;")
	w.methods(m.methods, "ClientRequests", "Requests that a client makes, by method.", protocol.ToServer, false)
	w.methods(m.methods, "ServerRequests", "Requests that the service makes, by method.", protocol.ToClient, false)
	w.methods(m.methods, "ClientNotifications", "Notifications that a client sends, by method.", protocol.ToServer, true)
	w.methods(m.methods, "ServerNotifications", "Notifications that the service sends, by method.", protocol.ToClient, true)
	return []byte(w.String())
}

type writer struct{ strings.Builder }

func (w *writer) line(format string, args ...any) {
	fmt.Fprintf(&w.Builder, format, args...)
	w.WriteByte('\n')
}

// doc writes a comment; nothing when there is no text.
func (w *writer) doc(indent, text string) {
	text = strings.ReplaceAll(text, "*/", "* /")
	lines := strings.Split(text, "\n")
	switch {
	case text == "":
	case len(lines) == 1:
		w.line("%s/** %s */", indent, text)
	default:
		w.line("%s/**", indent)
		for _, l := range lines {
			w.line("%s", strings.TrimRight(indent+" * "+l, " "))
		}
		w.line("%s */", indent)
	}
}

func (w *writer) definition(name string, s *jsonschema.Schema) {
	w.doc("", s.Description)
	if len(s.Properties) == 0 {
		body := typeOf(s)
		if s.Type == "object" && name == "Empty" {
			body = "Record<string, never>"
		}
		one := fmt.Sprintf("export type %s = %s;", name, body)
		if len(one) <= lineWidth || len(s.Enum) == 0 {
			w.line("%s", one)
			return
		}
		w.line("export type %s =", name)
		for i, v := range s.Enum {
			end := ""
			if i == len(s.Enum)-1 {
				end = ";"
			}
			w.line("  | %s%s", literal(v), end)
		}
		return
	}
	w.line("export interface %s {", name)
	for _, member := range s.PropertyOrder {
		p := s.Properties[member]
		w.doc("  ", p.Description)
		optional := "?"
		if slices.Contains(s.Required, member) {
			optional = ""
		}
		w.line("  %s%s: %s;", member, optional, typeOf(p))
	}
	w.line("}")
}

// lineWidth is the formatter's.
const lineWidth = 100

// typeOf is the TypeScript type of a schema.
func typeOf(s *jsonschema.Schema) string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, refPrefix)
	case len(s.Enum) > 0:
		return join(s.Enum, union, literal)
	case len(s.AnyOf) > 0:
		return join(s.AnyOf, union, typeOf)
	case len(s.Types) > 0:
		types := slices.Clone(s.Types)
		slices.SortStableFunc(types, func(a, b string) int { return boolInt(a == "null") - boolInt(b == "null") })
		return join(types, union, func(t string) string { return typeOf(&jsonschema.Schema{Type: t}) })
	}
	switch s.Type {
	case "array":
		item := typeOf(s.Items)
		if strings.Contains(item, " ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		if s.AdditionalProperties != nil {
			return "Record<string, " + typeOf(s.AdditionalProperties) + ">"
		}
		return "Record<string, unknown>"
	case "integer", "number":
		return "number"
	case "":
		return "unknown"
	default:
		return s.Type
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// union stands between the types of one.
const union = " | "

func join[T any](list []T, separator string, f func(T) string) string {
	parts := make([]string, len(list))
	for i, v := range list {
		parts[i] = f(v)
	}
	return strings.Join(parts, separator)
}

func literal(v any) string {
	if text, ok := v.(string); ok {
		return fmt.Sprintf("%q", text)
	}
	return fmt.Sprint(v)
}

// methods writes one map of methods.
func (w *writer) methods(all []protocol.Method, name, doc string, d protocol.Direction, notification bool) {
	w.line("")
	w.doc("", doc)
	w.line("export interface %s {", name)
	for _, m := range all {
		if m.Direction != d && m.Direction != protocol.BothWays || m.Notification != notification {
			continue
		}
		w.doc("  ", m.Doc)
		if notification {
			w.line("  %s: %s;", key(m.Name), typeName(m.Params, "undefined"))
		} else {
			w.line("  %s: { params: %s; result: %s };", key(m.Name), typeName(m.Params, "undefined"), typeName(m.Result, "null"))
		}
	}
	w.line("}")
}

// key is a member's name, quoted where it must be.
func key(name string) string {
	if strings.ContainsAny(name, "/$") {
		return fmt.Sprintf("%q", name)
	}
	return name
}

func typeName(v any, none string) string {
	if v == nil {
		return none
	}
	return reflect.TypeOf(v).Name()
}
