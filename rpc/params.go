package rpc

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// paramsDecoder makes a strict decoder of the parameters P: required members
// must stand, words must be among those that their type knows, and every error
// names the member. Unknown members are ignored. The decoder also returns the
// member sessionId, as far as decoding came.
func paramsDecoder[P any]() func(raw []byte) (params *P, sessionID string, err error) {
	rules := sync.OnceValue(func() *rules { return rulesOf(reflect.TypeFor[P]()) })
	return func(raw []byte) (*P, string, error) {
		params := new(P)
		if len(raw) == 0 {
			raw = []byte("{}")
		}
		if raw[0] != '{' {
			return params, "", invalidParams("", "the parameters must be an object")
		}
		err := json.Unmarshal(raw, params)
		v := reflect.ValueOf(params).Elem()
		session := ""
		if i := rules().session; i >= 0 {
			session = v.Field(i).String()
		}
		if err != nil {
			return params, session, decodeError(err)
		}
		return params, session, rules().check(v, raw, "")
	}
}

// decodeError puts the decoder's error in the words of whoever wrote the JSON.
func decodeError(err error) error {
	var semantic *json.SemanticError
	var syntactic *jsontext.SyntacticError
	switch {
	case errors.As(err, &semantic):
		path := memberPath(semantic.JSONPointer)
		switch {
		case semantic.JSONKind == 0 && semantic.Err != nil:
			return invalidParams(path, "%s: %v", path, semantic.Err)
		case isOwn(semantic):
			return invalidParams(path, "%s: %v", path, semantic.Err)
		}
		return invalidParams(path, "%s must be %s, not %s", path, describe(semantic.GoType), kindName(semantic.JSONKind))
	case errors.As(err, &syntactic):
		path := memberPath(syntactic.JSONPointer)
		return invalidParams(path, "%s: %v", path, syntactic.Err)
	}
	return invalidParams("", "the parameters cannot be understood: %v", err)
}

// isOwn reports whether a type's own UnmarshalJSON made the error, whose text
// then says what is needed.
func isOwn(e *json.SemanticError) bool {
	if e.Err == nil || e.GoType == nil {
		return false
	}
	p := reflect.PointerTo(e.GoType)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

// memberPath writes a JSON pointer as people write members: a.b.0.
func memberPath(p jsontext.Pointer) string {
	return strings.Join(slices.Collect(p.Tokens()), ".")
}

func describe(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Uint16:
		return "an integer from 0 to 65535"
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		return "an integer that is not negative"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "base64 text"
		}
		return "an array"
	default:
		return "something else"
	}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "true or false"
	case '"':
		return "this string"
	case '0':
		return "this number"
	case '{':
		return "an object"
	default:
		return "an array"
	}
}

// rules are what a struct of parameters demands beyond its Go types.
type rules struct {
	session  int // the index of sessionId, or -1
	required []member
	words    []member
	inner    []member
}

// member is one field and its name in JSON.
type member struct {
	index    int
	name     string
	required bool
	words    []string
	rules    *rules
}

func rulesOf(t reflect.Type) *rules {
	r := &rules{session: -1}
	if t.Kind() != reflect.Struct {
		return r
	}
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		m := member{index: i, name: name}
		if name == "sessionId" {
			r.session = i
		}
		if m.required = !strings.Contains(options, "omit"); m.required {
			r.required = append(r.required, m)
		}
		if m.words = wordsOf(field.Type); m.words != nil {
			r.words = append(r.words, m)
		}
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			m.rules = rulesOf(inner)
			r.inner = append(r.inner, m)
		}
	}
	return r
}

// wordsOf are the words that a type's Values method lists; nil for other types.
func wordsOf(t reflect.Type) []string {
	if t.Kind() != reflect.String {
		return nil
	}
	values := reflect.Zero(t).MethodByName("Values")
	if !values.IsValid() {
		return nil
	}
	list := values.Call(nil)[0]
	words := make([]string, list.Len())
	for i := range words {
		words[i] = list.Index(i).String()
	}
	return words
}

// check applies the rules to a decoded struct whose JSON is raw.
func (r *rules) check(v reflect.Value, raw []byte, prefix string) error {
	var present map[string]jsontext.Kind
	for _, m := range r.required {
		if !v.Field(m.index).IsZero() {
			continue
		}
		if present == nil {
			present = kinds(raw)
		}
		switch kind, is := present[m.name]; {
		case !is:
			return invalidParams(prefix+m.name, "%s is missing", prefix+m.name)
		case kind == 'n' && v.Field(m.index).Kind() != reflect.Pointer:
			t := v.Field(m.index).Type()
			return invalidParams(prefix+m.name, "%s must be %s, not null", prefix+m.name, describe(t))
		}
	}
	for _, m := range r.words {
		word := v.Field(m.index).String()
		if (word != "" || m.required) && !slices.Contains(m.words, word) {
			return invalidParams(prefix+m.name, "%s must be %s, not %q", prefix+m.name, oneOf(m.words), word)
		}
	}
	for _, m := range r.inner {
		field := v.Field(m.index)
		if field.IsZero() {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if err := m.rules.check(field, valueOf(raw, m.name), prefix+m.name+"."); err != nil {
			return err
		}
	}
	return nil
}

func oneOf(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(quoted, " or ")
}

// kinds are the members of a JSON object, and what their values are.
func kinds(object []byte) map[string]jsontext.Kind {
	found := map[string]jsontext.Kind{}
	eachMember(object, func(name string, v jsontext.Value) { found[name] = v.Kind() })
	return found
}

// valueOf is the value of a member of a JSON object.
func valueOf(object []byte, name string) (value []byte) {
	eachMember(object, func(n string, v jsontext.Value) {
		if n == name {
			value = v.Clone()
		}
	})
	return value
}

// eachMember calls f for each member of an object that was decoded before. The
// value lasts until f returns.
func eachMember(object []byte, f func(name string, value jsontext.Value)) {
	dec := jsontext.NewDecoder(bytes.NewReader(object))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return
		}
		key := name.String()
		value, err := dec.ReadValue()
		if err != nil {
			return
		}
		f(key, value)
	}
}
