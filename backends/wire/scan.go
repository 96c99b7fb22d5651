package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// A frame's line is scanned once, by hand: strictly, without reflection and
// without copying, so that every value in it can be handed on, or taken apart
// later, as the bytes that it is. Decoding into Go types is left to whoever
// needs it.

// A syntaxError says where a line stops being JSON.
type syntaxError struct {
	offset int
	what   string
}

func (e *syntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.what, e.offset)
}

func malformed(offset int, what string) error { return &syntaxError{offset, what} }

// skipSpace returns the index of the first byte at or after i that is no JSON
// white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// scanValue returns the index after the value that begins at b[i].
func scanValue(b []byte, i, depth int) (int, error) {
	if i >= len(b) {
		return i, malformed(i, "a value is missing")
	}
	switch c := b[i]; {
	case c == '"':
		return scanString(b, i)
	case c == '{':
		return scanObject(b, i, depth, nil)
	case c == '[':
		return scanArray(b, i, depth, nil)
	case c == 't':
		return scanLiteral(b, i, "true")
	case c == 'f':
		return scanLiteral(b, i, "false")
	case c == 'n':
		return scanLiteral(b, i, "null")
	case c == '-' || '0' <= c && c <= '9':
		return scanNumber(b, i)
	default:
		return i, malformed(i, "no value begins with this")
	}
}

func scanLiteral(b []byte, i int, literal string) (int, error) {
	end := i + len(literal)
	if end > len(b) || string(b[i:end]) != literal {
		return i, malformed(i, "no value begins with this")
	}
	return end, nil
}

// scanString returns the index after the string that begins at b[i].
func scanString(b []byte, i int) (int, error) {
	for i++; i < len(b); i++ {
		for i+8 <= len(b) && plain(binary.LittleEndian.Uint64(b[i:])) {
			i += 8
		}
		if i == len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			return i + 1, nil
		case c < 0x20:
			return i, malformed(i, "a control character in a string")
		case c == '\\':
			i++
			if i >= len(b) {
				return i, malformed(i, "an unfinished string")
			}
			switch b[i] {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				if i+4 >= len(b) || !isHex(b[i+1]) || !isHex(b[i+2]) || !isHex(b[i+3]) || !isHex(b[i+4]) {
					return i, malformed(i, "an escape that is none")
				}
				i += 4
			default:
				return i, malformed(i, "an escape that is none")
			}
		}
	}
	return i, malformed(i, "an unfinished string")
}

// plain reports whether none of eight bytes of a string is a quote, a backslash
// or a control character. Nearly all bytes of a large frame stand in strings.
func plain(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote|(backslash-ones)&^backslash|(w-ones*0x20)&^w)&highs == 0
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// scanNumber returns the index after the number that begins at b[i].
func scanNumber(b []byte, i int) (int, error) {
	start := i
	if b[i] == '-' {
		i++
	}
	switch {
	case i < len(b) && b[i] == '0':
		i++
	case i < len(b) && '1' <= b[i] && b[i] <= '9':
		i = scanDigits(b, i)
	default:
		return start, malformed(start, "a number that is none")
	}
	if i < len(b) && b[i] == '.' {
		end := scanDigits(b, i+1)
		if end == i+1 {
			return start, malformed(start, "a number that is none")
		}
		i = end
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		end := scanDigits(b, i)
		if end == i {
			return start, malformed(start, "a number that is none")
		}
		i = end
	}
	return i, nil
}

func scanDigits(b []byte, i int) int {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		i++
	}
	return i
}

// scanObject returns the index after the object that begins at b[i]. Each
// member is shown to visit, unless that is nil: its name as it is meant, its
// value as it stands. Both are only valid as long as b is.
func scanObject(b []byte, i, depth int, visit func(name, value []byte) error) (end int, err error) {
	if depth >= maxDepth {
		return i, malformed(i, "nested too deep")
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1, nil
	}
	for more := true; more; {
		name := i
		if i >= len(b) || b[i] != '"' {
			return i, malformed(i, "a member's name is missing")
		}
		if i, err = scanString(b, i); err != nil {
			return i, err
		}
		nameEnd := i
		i = skipSpace(b, i)
		if i >= len(b) || b[i] != ':' {
			return i, malformed(i, "a colon is missing")
		}
		value := skipSpace(b, i+1)
		if i, err = scanValue(b, value, depth+1); err != nil {
			return i, err
		}
		if visit != nil {
			if err = visit(unquote(b[name:nameEnd]), b[value:i]); err != nil {
				return i, err
			}
		}
		if i, more, err = scanNext(b, i, '}'); err != nil {
			return i, err
		}
	}
	return i, nil
}

// scanArray is scanObject for an array and its elements.
func scanArray(b []byte, i, depth int, visit func(value []byte) error) (end int, err error) {
	if depth >= maxDepth {
		return i, malformed(i, "nested too deep")
	}
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1, nil
	}
	for more := true; more; {
		value := i
		if i, err = scanValue(b, value, depth+1); err != nil {
			return i, err
		}
		if visit != nil {
			if err = visit(b[value:i]); err != nil {
				return i, err
			}
		}
		if i, more, err = scanNext(b, i, ']'); err != nil {
			return i, err
		}
	}
	return i, nil
}

// scanNext goes from the end of an element to the beginning of the next one, or
// past the closing bracket.
func scanNext(b []byte, i int, closing byte) (next int, more bool, err error) {
	i = skipSpace(b, i)
	switch {
	case i < len(b) && b[i] == ',':
		return skipSpace(b, i+1), true, nil
	case i < len(b) && b[i] == closing:
		return i + 1, false, nil
	default:
		return i, false, malformed(i, "a comma or a closing bracket is missing")
	}
}

// eachMember shows the members of the object that data is; it fails when data
// is anything else.
func eachMember(data []byte, visit func(name, value []byte) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return malformed(i, "not an object")
	}
	i, err := scanObject(data, i, 0, visit)
	if err != nil {
		return err
	}
	if i = skipSpace(data, i); i < len(data) {
		return malformed(i, "something follows the object")
	}
	return nil
}

// eachElement is eachMember for arrays.
func eachElement(data []byte, visit func(value []byte) error) error {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return malformed(i, "not an array")
	}
	i, err := scanArray(data, i, 0, visit)
	if err != nil {
		return err
	}
	if i = skipSpace(data, i); i < len(data) {
		return malformed(i, "something follows the array")
	}
	return nil
}

// unquote returns what a string that was scanned means: a part of it where no
// escape stands in it, else a copy. Halves of surrogate pairs become U+FFFD.
func unquote(quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return inner
	}
	// Only a lone surrogate is left to complain about, and the text has the
	// replacement character in its place.
	meant, _ := jsontext.AppendUnquote(make([]byte, 0, len(inner)), quoted)
	return meant
}

func isNull(value []byte) bool { return len(value) == 4 && value[0] == 'n' }

// stringValue is the meaning of a value that must be a string, or null for "".
func stringValue(value []byte) ([]byte, error) {
	switch {
	case isNull(value):
		return nil, nil
	case value[0] != '"':
		return nil, errNotString
	default:
		return unquote(value), nil
	}
}

// countValue is a value that must be a whole number in 0…limit, or null for 0.
func countValue(value []byte, limit int64) (int64, error) {
	if isNull(value) {
		return 0, nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || n < 0 || n > limit {
		return 0, fmt.Errorf("%.20q is not a number from 0 to %d", value, limit)
	}
	return n, nil
}

// boolValue is a value that must be true or false, or null for false.
func boolValue(value []byte) (bool, error) {
	switch value[0] {
	case 't':
		return true, nil
	case 'f', 'n':
		return false, nil
	default:
		return false, errNotBool
	}
}

var (
	errNotString = errors.New("a string is required")
	errNotBool   = errors.New("true or false is required")
)
