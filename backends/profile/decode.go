package profile

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
)

// kind is how the value of a member is read and described. Errors of read have
// paths below the member.
type kind struct {
	read   func(p *Profile, v jsontext.Value) *Error
	schema func() *jsonschema.Schema
}

// value reads v into a T or says what it must be.
func value[T any](v jsontext.Value, what string) (T, *Error) {
	var t T
	if v.Kind() == 'n' || json.Unmarshal(v, &t) != nil {
		return t, wrong("must be %s", what)
	}
	return t, nil
}

func typed(name string) func() *jsonschema.Schema {
	return func() *jsonschema.Schema { return &jsonschema.Schema{Type: name} }
}

// text is a string that every rule accepts.
func text(field func(*Profile) *string, rules ...func(string) *Error) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			s, err := value[string](v, "a string")
			if err == nil {
				err = check(s, append(rules, notEmpty, noNUL))
			}
			*field(p) = s
			return err
		},
		schema: typed("string"),
	}
}

// choice is one of some words; an alias stands for the word after its "=".
func choice(set func(*Profile, string), words ...string) kind {
	meaning := map[string]string{}
	var names []string
	for _, w := range words {
		name, means, alias := strings.Cut(w, "=")
		if !alias {
			means = name
		}
		names = append(names, name)
		meaning[name] = means
	}
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			s, err := value[string](v, "a string")
			if err != nil {
				return err
			}
			means, ok := meaning[s]
			if !ok {
				err := wrong("must be one of %s, not %q", strings.Join(names, ", "), s)
				err.Suggestion = Nearest(s, names)
				return err
			}
			set(p, means)
			return nil
		},
		schema: func() *jsonschema.Schema {
			s := &jsonschema.Schema{Type: "string"}
			for _, n := range names {
				s.Enum = append(s.Enum, n)
			}
			return s
		},
	}
}

func flag(field func(*Profile) *bool) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			b, err := value[bool](v, "true or false")
			*field(p) = b
			return err
		},
		schema: typed("boolean"),
	}
}

// integer is a whole number in [low, high].
func integer(set func(*Profile, int64), low, high int64) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			n, err := value[int64](v, "a whole number")
			if err != nil {
				return err
			}
			if n < low || n > high {
				return wrong("must be between %d and %d", low, high)
			}
			set(p, n)
			return nil
		},
		schema: func() *jsonschema.Schema {
			lowest, highest := float64(low), float64(high)
			return &jsonschema.Schema{Type: "integer", Minimum: &lowest, Maximum: &highest}
		},
	}
}

// number is a number above 0.
func number(field func(*Profile) *float64) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			n, err := value[float64](v, "a number")
			if err == nil && (n <= 0 || n > math.MaxUint16) {
				err = wrong("must be more than 0 and at most %d", math.MaxUint16)
			}
			*field(p) = n
			return err
		},
		schema: func() *jsonschema.Schema {
			zero := 0.0
			return &jsonschema.Schema{Type: "number", ExclusiveMinimum: &zero}
		},
	}
}

// duration is a duration above 0.
func duration(field func(*Profile) *time.Duration) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			d, err := ParseDuration(json.RawMessage(v))
			switch {
			case err != nil:
				return wrong("%v", err)
			case d == 0:
				return wrong("must be more than 0")
			}
			*field(p) = d
			return nil
		},
		schema: DurationSchema,
	}
}

// DurationSchema describes a duration of the configuration.
func DurationSchema() *jsonschema.Schema {
	zero := 0.0
	return &jsonschema.Schema{
		OneOf: []*jsonschema.Schema{
			{Type: "string", Pattern: `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
			{Type: "number", Minimum: &zero},
		},
	}
}

// size is a size above 0, in bytes.
func size(field func(*Profile) *int64) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			s, err := value[string](v, `a size such as "512m"`)
			if err != nil {
				return err
			}
			n, bad := ParseSize(s)
			switch {
			case bad != nil:
				return wrong("%v", bad)
			case n == 0:
				return wrong("must be more than 0")
			}
			*field(p) = n
			return nil
		},
		schema: func() *jsonschema.Schema {
			return &jsonschema.Schema{Type: "string", Pattern: `^[0-9]+ ?([bB]|[kKmMgGtT]([iI]?[bB]|[iI])?)?$`}
		},
	}
}

// list is a list of strings that every rule accepts, none of them twice.
func list(field func(*Profile) *[]string, rules ...func(string) *Error) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			l, err := value[[]string](v, "a list of strings")
			if err != nil {
				return err
			}
			for i, s := range l {
				err := check(s, append(rules, notEmpty, noNUL))
				if err == nil && slices.Contains(l[:i], s) {
					err = wrong("%q stands here twice", s)
				}
				if err != nil {
					return err.below(strconv.Itoa(i))
				}
			}
			*field(p) = l
			return nil
		},
		schema: stringsSchema,
	}
}

func stringsSchema() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: &jsonschema.Schema{Type: "string"}}
}

// argv is a command with its arguments.
func argv(field func(*Profile) *[]string) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			l, err := value[[]string](v, "a list: the program and its arguments")
			if err != nil {
				return err
			}
			if len(l) == 0 || l[0] == "" {
				return wrong("must name a program")
			}
			for i, s := range l {
				if err := noNUL(s); err != nil {
					return err.below(strconv.Itoa(i))
				}
			}
			*field(p) = l
			return nil
		},
		schema: stringsSchema,
	}
}

// variables is a map from variable names to values.
func variables(field func(*Profile) *map[string]string) kind {
	return kind{
		read: func(p *Profile, v jsontext.Value) *Error {
			m, err := value[map[string]string](v, "an object of strings")
			if err != nil {
				return err
			}
			for name, s := range m {
				if err := check(name, []func(string) *Error{variableName}); err != nil {
					return err.below(name)
				}
				if err := noNUL(s); err != nil {
					return err.below(name)
				}
			}
			*field(p) = m
			return nil
		},
		schema: func() *jsonschema.Schema {
			return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Type: "string"}}
		},
	}
}

// ignored is a member that is accepted for the sake of older files.
func ignored(message string) kind {
	return kind{
		read: func(p *Profile, _ jsontext.Value) *Error {
			p.Warnings = append(p.Warnings, message)
			return nil
		},
		schema: func() *jsonschema.Schema { return &jsonschema.Schema{} },
	}
}

// check applies the rules in order.
func check(s string, rules []func(string) *Error) *Error {
	for _, rule := range rules {
		if err := rule(s); err != nil {
			return err
		}
	}
	return nil
}
