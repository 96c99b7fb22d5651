package protocol

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// RawObject is one JSON object that is passed on undecoded.
type RawObject []byte

// MarshalJSON writes the object as it is, and {} for none.
func (o RawObject) MarshalJSON() ([]byte, error) {
	if len(o) == 0 {
		return []byte("{}"), nil
	}
	return o, nil
}

// UnmarshalJSON keeps a copy of the object; any other value is an error.
func (o *RawObject) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '{' {
		return fmt.Errorf("an object is needed")
	}
	*o = append((*o)[:0], data...)
	return nil
}

// Token names a request or its progress: a string or an integer, kept as it
// was written.
type Token string

// MarshalJSON writes the token as it came.
func (t Token) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return []byte(t), nil
}

// UnmarshalJSON accepts a string or an integer, and null as none.
func (t *Token) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		*t = ""
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		*t = Token(text)
		return nil
	}
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return fmt.Errorf("a string or an integer is needed")
	}
	*t = Token(text)
	return nil
}

// StringToken is the token of this text.
func StringToken(s string) Token {
	raw, err := json.Marshal(s)
	if err != nil { // a string always has a JSON form
		return ""
	}
	return Token(raw)
}

// Duration is a time span, written as a Go duration ("1m30s"); a number of
// seconds is read too.
type Duration time.Duration

// MarshalJSON writes the duration as text.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String())
}

// UnmarshalJSON reads text or a number of seconds, neither negative.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		parsed, err := time.ParseDuration(v)
		if err != nil || parsed < 0 {
			return fmt.Errorf("%q is not a duration such as \"30s\"", v)
		}
		*d = Duration(parsed)
	case float64:
		if v < 0 || v > math.MaxInt64/float64(time.Second) {
			return fmt.Errorf("%v seconds is not a possible duration", v)
		}
		*d = Duration(v * float64(time.Second))
	default:
		return fmt.Errorf("a duration such as \"30s\", or a number of seconds, is needed")
	}
	return nil
}

// Size is a number of bytes; text with a binary unit ("512m", "2g") is read too.
type Size int64

// UnmarshalJSON reads an integer, or text with one of the units k, m and g.
func (s *Size) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
	}
	digits, shift := text, 0
	if n := len(text); n > 0 {
		if unit := strings.IndexByte("kmg", text[n-1]|0x20); unit >= 0 {
			digits, shift = text[:n-1], 10*(unit+1)
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64>>shift {
		return fmt.Errorf("%s is not a size such as 1048576 or \"512m\"", data)
	}
	*s = Size(n << shift)
	return nil
}
