package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// bounded is the arguments as a person is shown them. Long texts lose their middle,
// the longest first, and say how much: what a command ends with counts as much as what
// it begins with.
func bounded(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxShownArguments {
		return raw
	}
	var o jsonObject
	if err := o.read(raw); err != nil {
		return shownAsText(raw)
	}
	for each := maxShownArguments / 4; each > 16; each /= 4 {
		shown := make(map[string]json.RawMessage, len(o.members))
		for name, v := range o.members {
			if len(v) > each {
				text, ok := o.text(name)
				if !ok {
					text = string(v)
				}
				cut, err := json.Marshal(withoutMiddle(text, each))
				if err != nil { // a text has a JSON form
					continue
				}
				v = cut
			}
			shown[withoutMiddle(name, each)] = v
		}
		if out, err := json.Marshal(shown); err == nil && len(out) <= maxShownArguments {
			return out
		}
	}
	return shownAsText(raw)
}

// shownAsText is the text of arguments that cannot be shown member by member, as the
// only member of an object.
func shownAsText(raw json.RawMessage) json.RawMessage {
	// One byte of JSON text is at most six in a JSON string.
	out, err := json.Marshal(map[string]string{"arguments": withoutMiddle(string(raw), maxShownArguments/8)})
	if err != nil { // a text has a JSON form
		return json.RawMessage(`{}`)
	}
	return out
}

// withoutMiddle is the beginning and the end of s, n bytes at most of whole characters,
// and between them how much is left out.
func withoutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	head, tail := n/2, len(s)-n/2
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s… [%d bytes cut] …%s", strings.ToValidUTF8(s[:head], "\uFFFD"), tail-head, strings.ToValidUTF8(s[tail:], "\uFFFD"))
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
