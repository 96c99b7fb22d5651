package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScanAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range scanSeeds() {
		checkScan(t, []byte(text))
	}
}

func FuzzScan(f *testing.F) {
	for _, text := range scanSeeds() {
		f.Add([]byte(text))
	}
	f.Fuzz(checkScan)
}

func scanSeeds() []string {
	return []string{
		`{}`, ` { } `, `{"a":1}`, `{"a":1,}`, `{"a" 1}`, `{,}`, `{"a":1 "b":2}`, `{"a":}`, `{"a"`, `{a:1}`,
		`{"a":[1,2,[3,{}],[]]}`, `{"a":[1 2]}`, `{"a":[1,]}`, `{"a":[}`, `[1]`, `1`, `"x"`, `null`, ``, ` `,
		`{"a":true,"b":false,"c":null}`, `{"a":tru}`, `{"a":nul}`, `{"a":truee}`,
		`{"a":0,"b":-0,"c":1.5e+10,"d":-1E-2}`, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":-}`, `{"a":1e}`, `{"a":+1}`,
		`{"a":"\"\\\/\b\f\n\r\t\u00e9"}`, `{"a":"\x"}`, `{"a":"\u00g0"}`, `{"a":"\u00"}`, `{"a":"`, `{"a":"\`, "{\"a\":\"\t\"}", `{"a":"\ud800"}`,
		"{\"a\":\"\x00\"}", "{\"a\":\"\x7f\u2028é😀\"}", "{\"a\":\"\xff\"}", `{"a":1} {"b":2}`, `{"a":1}x`, `{"\u0061":1}`,
		strings.Repeat(`{"a":`, 999) + `{}` + strings.Repeat(`}`, 999),
		strings.Repeat(`{"a":`, 1000) + `{}` + strings.Repeat(`}`, 1000),
		`{"a":` + strings.Repeat(`[`, 100_000),
	}
}

// checkScan compares with encoding/json, which differs by design in two ways:
// it takes text that is not UTF-8, and it nests deeper.
func checkScan(t *testing.T, text []byte) {
	var members int
	err := eachMember(text, func(name, value []byte) error {
		members++
		if !json.Valid(value) {
			t.Errorf("%.200q: member %q has the value %.200q", text, name, value)
		}
		return nil
	})
	var object map[string]json.RawMessage
	wantErr := json.Unmarshal(text, &object)
	if wantErr == nil && object == nil {
		return // encoding/json takes null for a map
	}
	if deep := strings.Count(string(text), "{")+strings.Count(string(text), "[") >= maxDepth; deep || !utf8.Valid(text) {
		return
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("%.200q: %v; encoding/json: %v", text, err, wantErr)
	}
	if err == nil && members < len(object) {
		t.Errorf("%.200q: %d members; encoding/json: %d", text, members, len(object))
	}
}

func TestScanRefusesDepth(t *testing.T) {
	nested := func(n int) []byte {
		return []byte(strings.Repeat(`{"a":`, n-1) + `{}` + strings.Repeat(`}`, n-1))
	}
	if err := eachMember(nested(maxDepth), nil); err != nil {
		t.Errorf("%d levels: %v", maxDepth, err)
	}
	if err := eachMember(nested(maxDepth+1), nil); err == nil {
		t.Errorf("%d levels were taken", maxDepth+1)
	}
}

func TestUnquote(t *testing.T) {
	for quoted, want := range map[string]string{
		`""`: "", `"plain é"`: "plain é", `"\"\\\/\b\f\n\r\t"`: "\"\\/\b\f\n\r\t",
		`"\u00e9\ud83d\ude00"`: "é😀", `"\ud800x"`: "\ufffdx",
	} {
		if got := string(unquote([]byte(quoted))); got != want {
			t.Errorf("%s means %q, want %q", quoted, got, want)
		}
	}
}

// A part that no client could read is refused, with what is wrong in it.
func TestParseResultRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`{"content":[{"type":"hologram","text":"x"}]}`:   "unknown type",
		`{"content":[{"text":"x"}]}`:                     "unknown type",
		`{"content":[{"type":"image","data":"%%%%"}]}`:   "base64",
		`{"content":[{"type":"image","data":"aGVsbG"}]}`: "EOF",
	} {
		if _, err := ParseResult([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", in, err, want)
		}
	}
	if _, err := ParseResult([]byte(`{"content":[{"type":"image","data":"aGVsbG8="},{"type":"text","text":"x"}]}`)); err != nil {
		t.Error(err)
	}
}
