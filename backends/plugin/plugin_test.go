package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseList(t *testing.T) {
	got, err := ParseList([]byte(`
		{"tools": [
			{"name": "one", "description": " Does one. ", "input_schema": {"type": "object", "properties": {}}, "annotations": {"read_only": true}, "more": 1},
			{"name": "Two-2_", "description": "Does\n\ttwo.", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": true, "title": "x"}},
			{"name": "three", "description": "Does three."}
		], "more": 1}
	`))
	if err != nil {
		t.Fatal(err)
	}
	want := []tool.Description{
		{Name: "one", Group: tool.GroupPlugins, Description: "Does one.", InputSchema: json.RawMessage(`{"type": "object", "properties": {}}`), Annotations: tool.Annotations{ReadOnly: true}},
		{Name: "Two-2_", Group: tool.GroupPlugins, Description: "Does\n\ttwo.", InputSchema: json.RawMessage(`{"type": "object"}`), Annotations: tool.Annotations{Destructive: true}},
		{Name: "three", Group: tool.GroupPlugins, Description: "Does three.", InputSchema: json.RawMessage(`{"type":"object"}`)},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got\n%+v, want\n%+v", got, want)
	}
}

func TestParseListRefuses(t *testing.T) {
	one := func(members string) string { return `{"tools":[{"name":"a","description":"d"` + members + `}]}` }
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a","description":"d"},`, MaxTools+1), ",")
	for answer, want := range map[string]string{
		"":                                       "with nothing",
		"hello":                                  `"hello"`,
		`{"tools":[]} x`:                         "something follows",
		`[]`:                                     "something else than the object",
		`{}`:                                     `without the member "tools"`,
		`{"tools":null}`:                         `without the member "tools"`,
		`{"tools":{}}`:                           "at /tools than belongs there",
		`{"tools":[]}`:                           "it lists no tool",
		`{"tools":[{"name":"a"}]}`:               "no description",
		`{"tools":[{"description":"d"}]}`:        `"" cannot be its name`,
		`{"tools":[{"name":1,"description":1}]}`: "at /tools/0/name",
		`{"tools":[{"name":"a b","description":"d"}]}`:                                           "cannot be its name",
		`{"tools":[{"name":"` + strings.Repeat("a", 65) + `","description":"d"}]}`:               "cannot be its name",
		`{"tools":[{"name":"a","description":"d"},{"name":"a","description":"d"}]}`:              `two tools called "a"`,
		`{"tools":[{"name":"a","description":"\u001b[2Jd"}]}`:                                    "control characters",
		`{"tools":[{"name":"a","description":"` + strings.Repeat("d", maxDescription+1) + `"}]}`: "and may have",
		`{"tools":[` + many + `]}`:                                                            "lists 129 tools",
		one(`,"input_schema":1`):                                                              `"type": "object"`,
		one(`,"input_schema":{"type":"array"}`):                                               `"type": "object"`,
		one(`,"input_schema":{"type":"object"},"inputSchema":{"type":"object"}`):              "both",
		one(`,"input_schema":{"type":"object","x":"` + strings.Repeat("x", maxSchema) + `"}`): "the schema of a has",
		one(`,"annotations":{"readOnly":true,"destructive":true}`):                            "read-only and destructive",
		one(`,"input_schema":` + strings.Repeat("[", 100) + strings.Repeat("]", 100)):         "nests deeper",
		one(`,"name":"b"`): "duplicate object member name",
		"{\"tools\":[{\"name\":\"a\",\"description\":\"\xff\"}]}": "not one JSON value",
		`{"tools":"` + strings.Repeat("x", MaxList) + `"}`:        "more than",
	} {
		_, err := ParseList([]byte(answer))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %v, want %q", answer, err, want)
		} else if len(err.Error()) > 600 {
			t.Errorf("%.80q: the error has %d bytes", answer, len(err.Error()))
		}
	}
}

func TestRunRequest(t *testing.T) {
	got, err := RunRequest("a", json.RawMessage(`{"x": "\u00fc\n"}`))
	if err != nil || string(got) != `{"action":"run","name":"a","arguments":{"x": "\u00fc\n"}}`+"\n" && string(got) != `{"action":"run","name":"a","arguments":{"x":"ü\n"}}`+"\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := RunRequest("a", nil); err != nil || string(got) != `{"action":"run","name":"a","arguments":{}}`+"\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{`{"x":`, `"` + strings.Repeat("x", MaxArguments) + `"`} {
		if _, err := RunRequest("a", json.RawMessage(bad)); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// told is a result as a test reads it.
func told(r tool.Result) string {
	s := ""
	for _, p := range r.Content {
		s += fmt.Sprintf("[%s %s%s%s%s%s]", p.Type, p.Text, p.Data, p.MIMEType, p.URI, p.Name)
	}
	if r.StructuredContent != nil {
		s += string(r.StructuredContent)
	}
	if r.IsError {
		s += "!"
	}
	return s
}

func TestParseAnswer(t *testing.T) {
	for answer, want := range map[string]string{
		`{"ok":true}`:                                    "",
		`{"ok":true,"result":null}`:                      "",
		`{"ok":true,"result":"text\n"}`:                  "[text text\n]",
		`{"ok":true,"result":""}`:                        "[text ]",
		`{"ok":true,"result":{ "a": [1, 2] }}`:           `[text {"a":[1,2]}]{"a":[1,2]}`,
		`{"ok":true,"result":[1, 2]}`:                    `[text [1,2]]{"result":[1,2]}`,
		`{"ok":true,"result":12345678901234567890}`:      `[text 12345678901234567890]{"result":12345678901234567890}`,
		`{"ok":true,"result":{"content":"no list"}}`:     `[text {"content":"no list"}]{"content":"no list"}`,
		`{"ok":false,"error":"no"}`:                      "[text no]!",
		`{"ok":false,"error":{"message":"no","code":1}}`: "[text no]!",
		`{"ok":false,"error":{"code":1}}`:                `[text {"code":1}]!`,
		`{"ok":false}`:                                   "[text the tool failed and did not say why]!",
		`{"ok":false,"error":""}`:                        "[text the tool failed and did not say why]!",
		`{"ok":true,"result":{"content":[],"isError":true,"structuredContent":{ "a":1 }}}`: `{"a":1}!`,
		`{"ok":true,"result":{"content":[
			{"type":"text","text":"t","annotations":{}},
			{"type":"image","data":"YWJj","mimeType":"image/png"},
			{"type":"audio","data":"YWJj","mime_type":"audio/wav"},
			{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":"r"}},
			{"type":"resource","resource":{"uri":"file:///b","blob":"YWJj"}},
			{"type":"resource_link","uri":"file:///c","name":"c","data":"x"},
			{"type":"new","x":1}
		]}}`: `[text t][image YWJjimage/png][audio YWJjaudio/wav][resource rtext/plainfile:///a][resource YWJjfile:///b][resource_link file:///cc][text {"type":"new","x":1}]`,
	} {
		got, err := ParseAnswer([]byte(answer))
		if err != nil || told(got) != want {
			t.Errorf("%s: %s, %v; want %s", answer, told(got), err, want)
		}
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	result := func(parts string) string { return `{"ok":true,"result":{"content":[` + parts + `]}}` }
	for answer, want := range map[string]string{
		"":                      "with nothing",
		"done":                  `"done"`,
		`{"result":1}`:          `without the member "ok"`,
		`{"ok":"yes"}`:          "at /ok",
		`{"ok":true}{"a":1}`:    "something follows",
		`{"ok":true,"ok":true}`: "not one JSON value",
		result(`{"type":"image","data":"?","mimeType":"image/png"}`):                                                      "not base64",
		result(`{"type":"image","data":"YWJj"}`):                                                                          "needs data and mimeType",
		result(`{"type":"resource_link"}`):                                                                                "needs a uri",
		result(`{"type":"resource"}`):                                                                                     "needs a uri",
		result(strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"t"},`, tool.MaxParts+1), ",")):                   "129 parts",
		result(`{"type":"image","mimeType":"image/png","data":"` + strings.Repeat("A", tool.MaxInlineBytes/3*4+8) + `"}`): "bytes of data",
		`{"ok":true,"result":"` + strings.Repeat("x", tool.MaxResultBytes+1) + `"}`:                                       "and may have",
		`{"ok":true,"result":"` + strings.Repeat("x", MaxAnswer) + `"}`:                                                   "more than",
		`{"ok":true,"result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`:                                "nests deeper",
	} {
		if got, err := ParseAnswer([]byte(answer)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80q: %.100s, %v; want %q", answer, told(got), err, want)
		}
	}
}

func TestEnded(t *testing.T) {
	for want, got := range map[string]string{
		"it ended with exit code 3":                   Ended(3, "", nil),
		"it was ended by SIGKILL and said: oh \ufffd": Ended(-1, "SIGKILL", []byte(" oh \xff\n")),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := Ended(1, "", []byte(strings.Repeat("ü", 5000)+"end")); len(got) > maxSaid+100 || !strings.HasSuffix(got, "end") || !strings.Contains(got, "…ü") {
		t.Errorf("%d bytes: %.60q", len(got), got)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object"}}]}`, `{"ok":true,"result":{"content":[{"type":"text","text":"a"}]}}`, `{"ok":false,"error":{}}`, "[[", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		if list, err := ParseList(answer); err == nil && (len(list) == 0 || len(list) > MaxTools) {
			t.Errorf("%d tools", len(list))
		}
		r, err := ParseAnswer(answer)
		if err != nil {
			return
		}
		if len(r.Content) > tool.MaxParts || r.StructuredContent != nil && (!json.Valid(r.StructuredContent) || r.StructuredContent[0] != '{') {
			t.Errorf("%+v", r)
		}
	})
}
