package plugins

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// types is a set of the types that values have.
type types uint8

const (
	typeNull types = 1 << iota
	typeBoolean
	typeInteger
	typeNumber // that is no integer, as the type of a value
	typeString
	typeArray
	typeObject
)

// everyType are the names of all types.
const everyType = "null, boolean, integer, number, string, array, object"

// typeNamed is the type of the name as a schema means it; 0 for none.
func typeNamed(name string) types {
	for i, known := range strings.Split(everyType, ", ") {
		if known == name {
			if t := types(1) << i; t != typeNumber {
				return t
			}
			return typeNumber | typeInteger
		}
	}
	return 0
}

// String is the types for people.
func (t types) String() string {
	var names []string
	for i, name := range strings.Split(everyType, ", ") {
		one := types(1) << i
		if t&one != 0 && (one != typeInteger || t&typeNumber == 0) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// typeOf is the type of a value.
func typeOf(v any) types {
	switch v := v.(type) {
	case nil:
		return typeNull
	case bool:
		return typeBoolean
	case decimal:
		if v.integer() {
			return typeInteger
		}
		return typeNumber
	case string:
		return typeString
	case []any:
		return typeArray
	case map[string]any:
		return typeObject
	}
	panic(fmt.Sprintf("plugins: %T is no value of JSON", v))
}

// size is how many values there are in v, and in it.
func size(v any) int {
	n := 1
	switch v := v.(type) {
	case string:
		n += len(v) / 64
	case []any:
		for _, e := range v {
			n += size(e)
		}
	case map[string]any:
		for name, e := range v {
			n += size(e) + len(name)/64
		}
	}
	return n
}

// canonical appends v so that equal values are written alike, and others are not.
func canonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, 'n')
	case bool:
		return strconv.AppendBool(b, v)
	case decimal:
		return v.append(b)
	case string:
		b = append(strconv.AppendInt(append(b, '"'), int64(len(v)), 10), ':')
		return append(b, v...)
	case []any:
		b = append(b, '[')
		for _, e := range v {
			b = append(canonical(b, e), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = append(canonical(canonical(b, name), v[name]), ',')
		}
		return append(b, '}')
	}
	panic(fmt.Sprintf("plugins: %T is no value of JSON", v))
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
