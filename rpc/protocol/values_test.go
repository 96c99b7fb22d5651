package protocol

import (
	"encoding/json"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

func TestValues(t *testing.T) {
	type values struct {
		Duration Duration  `json:"duration,omitzero"`
		Size     Size      `json:"size,omitzero"`
		Token    Token     `json:"token,omitzero"`
		Object   RawObject `json:"object,omitempty"`
	}
	good := map[string]values{
		`{"duration":"1m30s"}`:  {Duration: Duration(90 * time.Second)},
		`{"duration":2}`:        {Duration: Duration(2 * time.Second)},
		`{"duration":0.5}`:      {Duration: Duration(time.Second / 2)},
		`{"size":1048576}`:      {Size: 1 << 20},
		`{"size":"512m"}`:       {Size: 512 << 20},
		`{"size":"2G"}`:         {Size: 2 << 30},
		`{"size":"4k"}`:         {Size: 4 << 10},
		`{"token":7}`:           {Token: "7"},
		`{"token":"a\u0000b"}`:  {Token: `"a\u0000b"`},
		`{"token":null}`:        {},
		`{"object":{"a": 1.0}}`: {Object: RawObject(`{"a": 1.0}`)},
	}
	for text, want := range good {
		for name, unmarshal := range map[string]func([]byte, any) error{
			"v1": json.Unmarshal, "v2": func(b []byte, v any) error { return jsonv2.Unmarshal(b, v) },
		} {
			var got values
			if err := unmarshal([]byte(text), &got); err != nil {
				t.Errorf("%s %s: %v", name, text, err)
				continue
			}
			if got.Duration != want.Duration || got.Size != want.Size || got.Token != want.Token || string(got.Object) != string(want.Object) {
				t.Errorf("%s %s: got %+v", name, text, got)
			}
			again, err := jsonv2.Marshal(got)
			var second values
			if err == nil {
				err = jsonv2.Unmarshal(again, &second)
			}
			if err != nil || second.Duration != want.Duration || second.Size != want.Size || second.Token != want.Token {
				t.Errorf("%s %s: written as %s, %v", name, text, again, err)
			}
		}
	}
	for _, text := range []string{
		`{"duration":"soon"}`, `{"duration":-1}`, `{"duration":"-1s"}`, `{"duration":1e300}`, `{"duration":true}`,
		`{"size":-1}`, `{"size":1.5}`, `{"size":"1t"}`, `{"size":""}`, `{"size":"m"}`, `{"size":"99999999999g"}`,
		`{"token":1.5}`, `{"token":{}}`, `{"token":true}`, `{"object":[]}`, `{"object":"x"}`,
	} {
		var got values
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is accepted as %+v", text, got)
		}
	}
}

func TestStringToken(t *testing.T) {
	if got := StringToken(`a"b`); got != `"a\"b"` {
		t.Errorf("got %s", got)
	}
}

func TestErrorData(t *testing.T) {
	if d := ParseErrorData(nil); d != nil {
		t.Errorf("nothing gives %+v", d)
	}
	if d := ParseErrorData([]byte(`"text"`)); d != nil {
		t.Errorf("another shape gives %+v", d)
	}
	e := &Error{Code: CodeDenied, Message: "m", Data: ParseErrorData([]byte(`{"kind":"denied","retryable":false}`))}
	if e.Kind() != KindDenied || (&Error{}).Kind() != "" {
		t.Errorf("the kind is %q", e.Kind())
	}
}

// TestMethods checks what the generator and the dispatcher rely on.
func TestMethods(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Methods() {
		if seen[m.Name] {
			t.Errorf("%s stands twice", m.Name)
		}
		seen[m.Name] = true
		if m.Doc == "" || m.Direction == "" || m.Notification && m.Result != nil {
			t.Errorf("%s is incomplete: %+v", m.Name, m)
		}
	}
}
