package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ViewToken is the text that models read instead of structured content, as a
// quoted JSON string: what a result of the workspace tool called name gets as
// its text part where the far end sent none. It returns nil when there is no
// structured content, and the content itself, quoted, when the tool or the
// content's shape is not known. The content must be valid JSON.
//
// Where the view is one member of the content, that member's token is reused
// as it stands, so that a large file is not decoded and encoded again; the
// token then shares memory with structured.
func ViewToken(name string, structured json.RawMessage) json.RawMessage {
	if len(structured) == 0 {
		return nil
	}
	content, err := members(structured)
	if err != nil {
		return quote(string(structured))
	}
	var view json.RawMessage
	switch name {
	case "read_file":
		view = viewFile(content)
	case "write_file", "edit_file":
		view = viewChange(content)
	case "bash", "git":
		view = viewCommand(content)
	case "list_files":
		view = viewList(content)
	case "glob":
		view = viewPaths(content)
	case "grep":
		view = viewMatches(content)
	case "process":
		view = viewProcess(content)
	}
	if view == nil {
		return quote(string(structured))
	}
	return view
}

// View is [ViewToken], decoded; "" when there is no structured content.
func View(name string, structured json.RawMessage) string {
	return unquote(ViewToken(name, structured))
}

// object is the members of a JSON object, not decoded. There are few, so that to look
// at each is faster than to make a map of them.
type object []field

// field is one member of an object.
type field struct {
	name  []byte
	value json.RawMessage
}

// get is the last member of that name, nil when there is none.
func (o object) get(name string) json.RawMessage {
	for i := len(o) - 1; i >= 0; i-- {
		if string(o[i].name) == name {
			return o[i].value
		}
	}
	return nil
}

// errShape is what members answers to what is no JSON object.
var errShape = errors.New("not a JSON object")

// members cuts an object into its members without copying or checking what is
// in them: whoever received the content has done that, and a string of 16 MiB
// is passed over at the speed of memory.
func members(raw json.RawMessage) (object, error) {
	s := cutter{raw: raw}
	if !s.skip('{') {
		return nil, errShape
	}
	o := make(object, 0, usualFields)
	if s.skip('}') {
		return o, nil
	}
	for {
		s.space()
		name := s.value()
		if len(name) < 2 || name[0] != '"' || !s.skip(':') {
			return nil, errShape
		}
		s.space()
		value := s.value()
		if len(value) == 0 {
			return nil, errShape
		}
		o = append(o, field{nameOf(name), value})
		switch {
		case s.skip('}'):
			return o, nil
		case !s.skip(','):
			return nil, errShape
		}
	}
}

// usualFields is how many members the content of a tool has, give or take a few.
const usualFields = 10

// nameOf is the name in a token, without a copy where it stands there as it is.
func nameOf(token json.RawMessage) []byte {
	if bytes.IndexByte(token, '\\') >= 0 || !utf8.Valid(token) {
		return []byte(unquote(token))
	}
	return token[1 : len(token)-1]
}

// cutter goes over JSON value by value.
type cutter struct {
	raw json.RawMessage
	at  int
}

func (s *cutter) space() {
	for s.at < len(s.raw) && strings.IndexByte(" \t\r\n", s.raw[s.at]) >= 0 {
		s.at++
	}
}

// skip passes over white space and c, if c comes next.
func (s *cutter) skip(c byte) bool {
	s.space()
	if s.at < len(s.raw) && s.raw[s.at] == c {
		s.at++
		return true
	}
	return false
}

// value passes over one value and returns it, nil when it has no end.
func (s *cutter) value() json.RawMessage {
	start, depth := s.at, 0
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case '"':
			if !s.text() {
				return nil
			}
			if depth == 0 {
				return s.raw[start:s.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return s.raw[start:s.at] // behind a number
			}
			if depth--; depth == 0 {
				s.at++
				return s.raw[start:s.at]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.raw[start:s.at]
			}
		}
		s.at++
	}
	return nil
}

// text passes over a string.
func (s *cutter) text() bool {
	for from := s.at + 1; ; {
		i := bytes.IndexByte(s.raw[from:], '"')
		if i < 0 {
			return false
		}
		end := from + i
		slashes := end
		for slashes > from && s.raw[slashes-1] == '\\' {
			slashes--
		}
		if from = end + 1; (end-slashes)%2 == 0 {
			s.at = end + 1
			return true
		}
	}
}

// decode decodes a member into v and says whether it is there and fits.
func (o object) decode(name string, v any) bool {
	return len(o.get(name)) > 0 && jsonv2.Unmarshal(o.get(name), v, jsontext.AllowInvalidUTF8(true)) == nil
}

func (o object) text(name string) string { return unquote(o.get(name)) }

func (o object) number(name string) (n int64) {
	// Nearly every number is digits and nothing else.
	if n, err := strconv.ParseInt(string(o.get(name)), 10, 64); err == nil {
		return n
	}
	o.decode(name, &n)
	return n
}

func (o object) flag(name string) bool { return string(o.get(name)) == "true" }

// token is a member that is a string, nil otherwise.
func (o object) token(name string) json.RawMessage {
	if t := o.get(name); len(t) >= 2 && t[0] == '"' {
		return t
	}
	return nil
}

func quote(s string) json.RawMessage {
	b, err := jsontext.AppendQuote(nil, s)
	if err != nil { // invalid UTF-8, which is replaced all the same
		b, _ = jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "\ufffd"))
	}
	return json.RawMessage(b)
}

func unquote(token json.RawMessage) string {
	if len(token) == 0 || token[0] != '"' {
		return ""
	}
	if n := len(token); 2 <= n && n < 64 && token[n-1] == '"' && bytes.IndexByte(token, '\\') < 0 && utf8.Valid(token) {
		return string(token[1 : n-1]) // the name of a member
	}
	b, _ := jsontext.AppendUnquote(nil, token) // what can be read of it
	return string(b)
}

// empty reports whether a string token is "".
func empty(token json.RawMessage) bool { return len(token) <= 2 }

// joined is a string token with more text behind it, on a line of its own.
func joined(token json.RawMessage, more string) json.RawMessage {
	if more == "" {
		return token
	}
	body := token[:len(token)-1]
	if len(body) > 1 && !bytes.HasSuffix(body, []byte(`\n`)) {
		more = "\n" + more
	}
	return append(bytes.Clone(body), quote(more)[1:]...)
}
