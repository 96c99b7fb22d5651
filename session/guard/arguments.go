package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

// jsonObject is a call's arguments, decoded one level deep.
type jsonObject struct {
	members map[string]json.RawMessage
}

var errArguments = errors.New("the arguments are no JSON object whose members stand once")

// read decodes one object. A member that stands twice is an error: which of them
// would count is for others to say.
func (o *jsonObject) read(raw []byte) error {
	o.members = map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errArguments
	}
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return errArguments
		}
		if _, twice := o.members[name]; twice {
			return errArguments
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return errArguments
		}
		o.members[name] = v
	}
	if _, err := d.Token(); err != nil || d.More() {
		return errArguments
	}
	return nil
}

// text is a member that is a string.
func (o *jsonObject) text(name string) (string, bool) {
	var s *string
	if json.Unmarshal(o.members[name], &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// list is a member that is a list of strings.
func (o *jsonObject) list(name string) ([]string, bool) {
	var l []string
	if json.Unmarshal(o.members[name], &l) != nil || l == nil {
		return nil, false
	}
	return l, true
}

// texts are a member's texts: a string, each string of a list, or the JSON of
// what is neither.
func (o *jsonObject) texts(name string) []string {
	raw, ok := o.members[name]
	if !ok {
		return nil
	}
	if s, ok := o.text(name); ok {
		return []string{s}
	}
	if l, ok := o.list(name); ok {
		return l
	}
	return []string{string(raw)}
}

// bounded is the arguments as a person is shown them: long texts are cut, and say
// so, the longest first.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxShownArguments {
		return raw
	}
	var o jsonObject
	if err := o.read(raw); err != nil {
		return json.RawMessage(`{}`)
	}
	for each := maxShownArguments / 4; each > 16; each /= 4 {
		shown := make(map[string]json.RawMessage, len(o.members))
		for name, v := range o.members {
			if len(v) > each {
				text, ok := o.text(name)
				if !ok {
					text = string(v)
				}
				cut, err := json.Marshal(cut(text, each) + " [cut]")
				if err != nil { // a text has a JSON form
					continue
				}
				v = cut
			}
			shown[cut(name, each)] = v
		}
		if out, err := json.Marshal(shown); err == nil && len(out) <= maxShownArguments {
			return out
		}
	}
	return json.RawMessage(`{}`)
}

// cut is at most n bytes of s, of whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return strings.ToValidUTF8(s[:n], "\uFFFD") + "…"
}
