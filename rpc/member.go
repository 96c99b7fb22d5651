package rpc

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// memberOf is the one rule for the path of a bad parameter: it names a member of
// the method's parameters, whoever found it bad and however that one calls it, or
// nothing. A file that is in the way is in the message; the member that named it
// is here.
func memberOf(method, path string) string {
	t := paramsOf(method)
	if path == "" || t == nil {
		return ""
	}
	for _, p := range []string{path, editorWord(path)} {
		if name, rest, deeper := strings.Cut(p, "."); hasMember(t, p) || deeper && hasInner(t, name) && isWord(rest) {
			return p // or a member that is none, of an object where each must be one
		}
	}
	switch {
	case method == protocol.MethodToolCall && isArgument(path):
		return "arguments." + path
	case method == protocol.MethodToolCall:
		return "arguments"
	case hasMember(t, "path"):
		return "path"
	}
	return ""
}

// paramsOf is the type of a method's parameters; nil for one that has none.
func paramsOf(method string) reflect.Type {
	for _, m := range protocol.Methods() {
		if m.Name == method {
			return reflect.TypeOf(m.Params)
		}
	}
	return nil
}

// editorWord is what this protocol calls a member of a request to the far end.
func editorWord(member string) string {
	switch member {
	case "permission_mode":
		return "permissionMode"
	case "operation_id":
		return "operationId"
	case "environment":
		return "env"
	case "actor_kind":
		return "actor.kind"
	case "id":
		return "processId"
	case "input":
		return "data"
	case "OffsetBytes":
		return "offset"
	case "options.Encoding":
		return "encoding"
	case "call.arguments":
		return "arguments"
	}
	return member
}

// hasMember reports whether a path, as [memberPath] writes it, leads to a member
// of the struct. What is below a member of free shape is its own matter.
func hasMember(t reflect.Type, path string) bool {
	name, rest, deeper := strings.Cut(path, ".")
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.Map:
		return true
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 { // JSON that is handed on
			return true
		}
		i, err := strconv.Atoi(name)
		return err == nil && i >= 0 && (!deeper || hasMember(t.Elem(), rest))
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
				return !deeper || hasMember(field.Type, rest)
			}
		}
	}
	return false
}

// hasInner reports whether a member of the struct is a struct too.
func hasInner(t reflect.Type, name string) bool {
	for i := range t.NumField() {
		field := t.Field(i)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if tag, _, _ := strings.Cut(field.Tag.Get("json"), ","); tag == name {
			return inner.Kind() == reflect.Struct
		}
	}
	return false
}

// isWord reports whether a text can be the name of one member of an object.
func isWord(name string) bool {
	for _, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') {
			return false
		}
	}
	return name != "" && len(name) <= maxWord
}

// maxWord is the longest name of a member, in bytes, that is told as one.
const maxWord = 64

// isArgument reports whether a path can be the name of a tool's argument: other
// than most files it is one word.
func isArgument(path string) bool {
	return isWord(path) && path == strings.ToLower(path)
}
