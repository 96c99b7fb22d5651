package plugins

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func compile(t *testing.T, schema string) *Schema {
	t.Helper()
	s, err := CompileSchema(json.RawMessage(schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Every fault is told, each with its place.
func TestCheck(t *testing.T) {
	const schema = `{
		"type": "object", "additionalProperties": false, "required": ["path", "mode"],
		"properties": {
			"path": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
			"mode": {"enum": ["fast", "slow"]},
			"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}, "maxItems": 3},
			"when": {"type": "string", "format": "date"},
			"size": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]},
			"free": {"$ref": "#/$defs/any"}
		},
		"$defs": {"row": {"type": "object", "properties": {"n": {"type": "integer"}, "rows": {"items": {"$ref": "#/$defs/row"}}}}, "any": true}
	}`
	tests := map[string]struct {
		arguments string
		want      []string // faults as "path: part of the message"
	}{
		"right":             {`{"path":"a","mode":"fast","rows":[{"n":1}],"size":"auto","free":[1]}`, nil},
		"formats are notes": {`{"path":"a","mode":"fast","when":"yesterday"}`, nil},
		"missing":           {`{}`, []string{": missing properties 'path', 'mode'"}},
		"several": {`{"path":"","mode":"quick","rows":[{"n":"1"},{"rows":[{"n":true}]}],"more":1}`, []string{
			": additional properties 'more'", "/mode: value must be one of", "/path: minLength", "/path: ", "/rows/0/n: got string", "/rows/1/rows/0/n: got boolean",
		}},
		"alternatives": {`{"path":"a","mode":"slow","size":0}`, []string{"/size: ", "/size: ", "/size: "}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := compile(t, schema).Check(json.RawMessage(test.arguments))
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(test.want) {
				t.Fatalf("faults %v, want %v", got, test.want)
			}
			for i, f := range got {
				path, part, _ := strings.Cut(test.want[i], ": ")
				if f.Path != path || !strings.Contains(f.Message, part) {
					t.Errorf("fault %d is %v, want %s", i, f, test.want[i])
				}
			}
		})
	}
}

func TestRefuse(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	faults, err := s.Check(json.RawMessage(`{"n":"one"}`))
	if err != nil {
		t.Fatal(err)
	}
	r := Refuse("count", faults)
	if text := r.Content[0].String(); !r.IsError || !strings.Contains(text, "at /n: got string, want integer") || !strings.Contains(text, "not called") {
		t.Errorf("the model reads %q", text)
	}
}

// What a schema may not be, and what is said of it.
func TestCompileSchemaRefuses(t *testing.T) {
	deep := strings.Repeat(`{"not":`, 70) + `{}` + strings.Repeat(`}`, 70)
	for schema, want := range map[string]string{
		`{"type":"objekt"}`:                                                 "is not a JSON Schema: at /type",
		`{"$ref":"https://example.com/s.json"}`:                             "references must stay within it",
		`{"$ref":"other.json#/a"}`:                                          "references must stay within it",
		`{"$ref":"file:///etc/passwd"}`:                                     "references must stay within it",
		`{"$schema":"https://example.com/draft"}`:                           "nothing is loaded from elsewhere",
		`{"$ref":"#/examples/0","examples":[{"not":{}}]}`:                   "where no schema is",
		`{"$ref":"#there"}`:                                                 "which is not there",
		`{"$dynamicRef":"#a"}`:                                              "$dynamicRef",
		`{"properties":{"a":{"$id":"b"}}}`:                                  "a second $id",
		`{"properties":{"a":{"pattern":"a{900}b{900}c{900}d{900}e{900}"}}}`: "too large",
		`{"properties":{"a":{"pattern":"(((a{100}){100}){100})"}}}`:         "pattern",
		`{"pattern":"(?=a)"}`:                                               "at /pattern",
		deep:                                                                "nests deeper",
		`[]`:                                                                "is not an object",
		`{"a":1`:                                                            "is not JSON",
		`{"items":3}`:                                                       "is not a JSON Schema: at /items",
	} {
		_, err := CompileSchema(json.RawMessage(schema))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", schema, err, want)
		}
	}
}

// What a schema may be: its own words are kept.
func TestCompileSchemaTakes(t *testing.T) {
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string","format":"uri"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/tool","$defs":{"a b":{"$anchor":"here"}},"items":{"$ref":"#here"},"not":{"$ref":"#/$defs/a%20b"}}`,
		`{"properties":{"format":{"type":"string"},"enum":{"type":"array"}},"default":{"format":1}}`,
		`{"$ref":"#"}`,
	} {
		if _, err := CompileSchema(json.RawMessage(schema)); err != nil {
			t.Errorf("%.80s: %v", schema, err)
		}
	}
	s := compile(t, `{"properties":{"format":{"type":"string"}}}`)
	if faults, err := s.Check(json.RawMessage(`{"format":1}`)); len(faults) != 1 || err != nil {
		t.Errorf("a property called format: %v, %v", faults, err)
	}
}

// No schema and no arguments keep the service busy: a check that would take
// 2^40 steps ends, as an error.
func TestCheckIsBounded(t *testing.T) {
	doubled := func(keyword, leaf string) string {
		var b strings.Builder
		fmt.Fprintf(&b, `{"type":"object","properties":{"x":{"$ref":"#/$defs/s0"}},"$defs":{`)
		for i := range 40 {
			fmt.Fprintf(&b, `"s%d":{%s:[{"$ref":"#/$defs/s%d"},{"$ref":"#/$defs/s%d"}]},`, i, keyword, i+1, i+1)
		}
		return b.String() + `"s40":` + leaf + `}}`
	}
	list := `{"x":[` + strings.Repeat("1,", 100_000) + `1]}`
	tests := map[string]struct{ schema, arguments string }{
		"all":             {doubled(`"allOf"`, `{"type":"string"}`), `{"x":"a"}`},
		"any":             {doubled(`"anyOf"`, `{"type":"string"}`), `{"x":1}`},
		"one":             {doubled(`"oneOf"`, `{"type":"string"}`), `{"x":1}`},
		"within not":      {strings.Replace(doubled(`"anyOf"`, `{"type":"string"}`), `"x":{"$ref":"#/$defs/s0"}`, `"x":{"not":{"$ref":"#/$defs/s0"}}`, 1), `{"x":1}`},
		"within contains": {strings.Replace(doubled(`"allOf"`, `{"type":"string"}`), `"x":{"$ref":"#/$defs/s0"}`, `"x":{"contains":{"$ref":"#/$defs/s0"}}`, 1), `{"x":["a"]}`},
		"down the value": {`{"type":"object","properties":{"x":{"$ref":"#/$defs/t"}},"$defs":{"t":{"allOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}}]}}}`,
			`{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`},
		"many values": {`{"type":"object","properties":{"x":{"items":{"enum":["` + strings.Repeat(`a","`, 1000) + `b"]}}}}`, list},
		"many patterns": {`{"type":"object","properties":{"x":{"items":{"type":"string","pattern":"` + strings.Repeat("(a|b)*", 200) + `$"}}}}`,
			`{"x":["` + strings.Repeat(strings.Repeat("a", 1000)+`","`, 1000) + `"]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := compile(t, test.schema)
			s.most = maxEffort / 20
			faults, err := s.Check(json.RawMessage(test.arguments))
			if tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "too large") {
				t.Fatalf("%d faults, error %v", len(faults), err)
			}
			// The next check has its own effort.
			if faults, err := s.Check(json.RawMessage(`{"y":1}`)); err != nil || len(faults) > 0 {
				t.Errorf("afterwards: %v, %v", faults, err)
			}
		})
	}
	s := compile(t, `{"type":"object"}`)
	if _, err := s.Check(json.RawMessage(`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`)); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("deep arguments: %v", err)
	}
	if faults, err := compile(t, `{"type":"object","properties":{"x":{"items":{"type":"string"}}}}`).Check(json.RawMessage(list)); err != nil || len(faults) != maxFaults {
		t.Errorf("many faults: %d, %v", len(faults), err)
	}
}

// Arguments of an ordinary size fit.
func TestCheckTakesMuch(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"text":{"type":"string"},"rows":{"items":{"type":"object","required":["a"],"properties":{
		"a":{"type":"integer"},"b":{"type":"string","pattern":"^[a-z]*$"},"c":{"enum":["x","y","z"]}}}}}}`)
	rows := strings.Repeat(`{"a":1,"b":"abc","c":"z"},`, 10_000)
	arguments := `{"text":"` + strings.Repeat("word ", 1<<20) + `","rows":[` + strings.TrimSuffix(rows, ",") + `]}`
	if faults, err := s.Check(json.RawMessage(arguments)); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}
