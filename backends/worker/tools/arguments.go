package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// refusal is an error whose words are meant for the model: they become the
// result.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// handle makes a handler of a function that takes decoded arguments. An argument
// that the tool does not have is refused, other than elsewhere in the protocol: a
// model that misspells one and is not told takes what was done for what it asked.
func handle[A any](f func(ctx context.Context, c *call, a A) (tool.Result, error)) handler {
	needed := required(reflect.TypeFor[A]())
	return func(ctx context.Context, c *call) (tool.Result, error) {
		var a A
		raw := c.Arguments
		if len(raw) == 0 || string(raw) == "null" {
			raw = json.RawMessage("{}")
		}
		if kind := jsontext.Value(raw).Kind(); kind != '{' {
			return tool.Result{}, tool.Errorf(tool.InvalidParams, "the arguments of %s are not a JSON object", c.Name).WithPath("arguments")
		}
		if err := jsonv2.Unmarshal(raw, &a, jsonv2.RejectUnknownMembers(true)); err != nil {
			return tool.Result{}, badArguments(c.Name, reflect.TypeFor[A](), err)
		}
		for _, i := range needed {
			if reflect.ValueOf(&a).Elem().Field(i).IsZero() {
				return tool.Result{}, refuse("%s: %s is missing", c.Name, argumentName(reflect.TypeFor[A]().Field(i)))
			}
		}
		return f(ctx, c, a)
	}
}

// badArguments says which member of the arguments, a struct type, is wrong and
// how.
func badArguments(name string, arguments reflect.Type, err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		if strings.Contains(err.Error(), "UTF-8") || strings.Contains(err.Error(), "surrogate") {
			return refuse("%s: %s holds text that is not valid Unicode; write such bytes with encoding base64", name, member(syntax.JSONPointer))
		}
		return tool.Errorf(tool.InvalidParams, "the arguments of %s are not valid JSON: %w", name, err).WithPath("arguments")
	}
	var semantic *jsonv2.SemanticError
	if errors.As(err, &semantic) && errors.Is(err, jsonv2.ErrUnknownName) {
		return unknownArgument(name, semantic.JSONPointer.LastToken(), arguments)
	}
	if semantic != nil && semantic.GoType != nil {
		return refuse("%s: %s must be %s", name, member(semantic.JSONPointer), jsonName(semantic.GoType))
	}
	return refuse("%s: bad arguments: %v", name, err)
}

// unknownArgument names the argument that was probably meant, and all there are.
func unknownArgument(name, argument string, arguments reflect.Type) error {
	known := make([]string, arguments.NumField())
	for i := range known {
		known[i] = argumentName(arguments.Field(i))
	}
	near := tool.Nearest(argument, known)
	if near == "" {
		// What other tools call by another word, such as old_string or file_path.
		words := strings.Split(strings.ToLower(argument), "_")
		if i := slices.IndexFunc(known, func(k string) bool {
			return slices.ContainsFunc(strings.Split(k, "_"), func(word string) bool { return slices.Contains(words, word) })
		}); i >= 0 {
			near = known[i]
		}
	}
	did := "nothing was done"
	if near != "" {
		did += fmt.Sprintf("; did you mean %s?", near)
	} else {
		did += "."
	}
	return refuse("%s has no argument %.64q, %s Its arguments are %s.", name, argument, did, strings.Join(known, ", "))
}

// argumentName is what JSON calls a field of arguments.
func argumentName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

func member(p jsontext.Pointer) string {
	s := strings.TrimPrefix(string(p), "/")
	switch {
	case s == "":
		return "the arguments"
	case strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") != "":
		return strconv.Quote(s) // not the name of an argument alone
	}
	return s
}

// jsonName is what JSON calls values of a Go type.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonName(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array of strings"
	case reflect.Struct:
		return "an object"
	default:
		return "an integer"
	}
}

// required are the indexes of the fields whose tag says that they must be given:
// strings that may be empty are pointers.
func required(arguments reflect.Type) (fields []int) {
	for i := range arguments.NumField() {
		if _, ok := arguments.Field(i).Tag.Lookup("required"); ok {
			fields = append(fields, i)
		}
	}
	return fields
}

// between checks an optional integer.
func between(name string, value *int64, low, high int64) error {
	if value != nil && (*value < low || *value > high) {
		return refuse("%s is %d; it must be from %d to %d", name, *value, low, high)
	}
	return nil
}

// or is the value of an optional argument.
func or[T any](value *T, otherwise T) T {
	if value == nil {
		return otherwise
	}
	return *value
}

// result encodes a tool's structured content.
func result(structured any) (tool.Result, error) {
	raw, err := jsonv2.Marshal(structured)
	if err != nil {
		return tool.Result{}, tool.Errorf(tool.Internal, "encode a result: %w", err)
	}
	return tool.Result{StructuredContent: json.RawMessage(raw)}, nil
}

// sentence says in words for a model what went wrong with a file.
func (s *Set) sentence(err error) string {
	var pathErr *fs.PathError
	if !errors.As(err, &pathErr) {
		return err.Error()
	}
	p := s.o.Root.Format(pathErr.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("there is no file %q", p)
	case errors.Is(err, fs.ErrExist):
		return fmt.Sprintf("%q exists already", p)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("%q: permission denied", p)
	case errors.Is(err, syscall.EISDIR):
		return fmt.Sprintf("%q is a directory", p)
	case errors.Is(err, workspace.ErrNotDirectory):
		return fmt.Sprintf("%q: not a directory", p)
	case errors.Is(err, syscall.ELOOP):
		return fmt.Sprintf("%q: its symbolic links go round in a circle", p)
	case tool.IsDiskFull(err):
		return fmt.Sprintf("%q: no space is left on the disk; nothing was changed. Make room there, then do it again", p)
	case errors.Is(err, workspace.ErrSpecial):
		return fmt.Sprintf("%q is a device, pipe or socket, not a file", p)
	}
	return fmt.Sprintf("%q: %v", p, pathErr.Err)
}

// text makes bytes valid UTF-8 and says whether that lost any.
func text(b []byte) (s string, lossy bool) {
	if utf8.Valid(b) {
		return string(b), false
	}
	return strings.ToValidUTF8(string(b), "\ufffd"), true
}

// fit is how many bytes of b can be encoded as a JSON string of at most limit
// bytes, ending on a character.
func fit(b []byte, limit int) int {
	if len(b)*6 <= limit {
		return len(b)
	}
	size := 0
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == utf8.RuneError:
			size += 3
		case r == '"', r == '\\', r == '\n', r == '\r', r == '\t', r == '\b', r == '\f':
			size += 2
		case r < ' ':
			size += 6
		default:
			size += n
		}
		if size > limit {
			return i
		}
		i += n
	}
	return len(b)
}

// character is the largest cut of b at or before n that splits no character.
func character(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	for i := n; i >= 0 && n-i < utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return n // not UTF-8
}
