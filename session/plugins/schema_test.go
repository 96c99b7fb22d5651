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
		`{"type":"objekt"}`:                       "is not a JSON Schema: at /type",
		`{"$ref":"https://example.com/s.json"}`:   "references must stay within it",
		`{"$ref":"other.json#/a"}`:                "references must stay within it",
		`{"$ref":"file:///etc/passwd"}`:           "references must stay within it",
		`{"$schema":"https://example.com/draft"}`: "has the $schema \"https://example.com/draft\", which is not known",
		`{"$schema":4}`:                           "at /$schema",
		`{"$ref":"#"}`:                            `refers to itself at "/$ref"`,
		`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"allOf":[{"not":{"$ref":"#/$defs/c"}}]},"c":{"if":true,"then":{"$ref":"#/$defs/b"}}}}`: `refers to itself at "/$defs/`,
		`{"dependentSchemas":{"a":{"$ref":"#"}}}`:                           `refers to itself at "/dependentSchemas/a/$ref"`,
		`{"$ref":"#/examples/0","examples":[{"not":{}}]}`:                   "where no schema is",
		`{"$ref":"#there"}`:                                                 "which is not there",
		`{"$dynamicRef":"#a"}`:                                              "$dynamicRef",
		`{"properties":{"a":{"$id":"b"}}}`:                                  "a second $id",
		`{"properties":{"a":{"pattern":"a{900}b{900}c{900}d{900}e{900}"}}}`: "too large",
		`{"properties":{"a":{"pattern":"(((a{100}){100}){100})"}}}`:         "pattern",
		`{"properties":{"a":{"pattern":"(?=a)"}}}`:                          "at /properties/a/pattern: the pattern (?=a) cannot be used",
		`{"patternProperties":{"(":{}}}`:                                    "at /patternProperties/(: the pattern ( cannot",
		`{"properties":{"a":{"minLength":-1}}}`:                             "at /properties/a/minLength: must be an integer of 0 or more, got -1",
		`{"properties":{"a":{"maximum":"1"}}}`:                              "at /properties/a/maximum: must be a number, got string",
		`{"multipleOf":0}`:                                                  "at /multipleOf: must be more than 0",
		`{"minimum":1e99999999999999999999}`:                                "exponent",
		`{"required":["a","a"]}`:                                            `at /required/1: "a" stands there twice`,
		`{"anyOf":[]}`:                                                      "at /anyOf: is an empty array",
		`{"items":[{}]}`:                                                    "at /items: a schema must be an object or a boolean, got array",
		`{"properties":{"a":{"type":["string","text"]}}}`:                   `at /properties/a/type/1: "text" is no type`,
		`{"enum":[` + strings.Repeat("0,", maxNodes) + `0]}`:                "has more than 20000 parts",
		`{"properties":{"` + strings.Repeat("a", maxPointer) + `":{}}}`:     "has names of more than",
		chained(maxChain + 2):                                               "within each other",
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

// chained is a schema of n references, one behind the other.
func chained(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"properties":{"x":{"$ref":"#/$defs/0"}},"$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"%d":{"$ref":"#/$defs/%d"},`, i, i+1)
	}
	return b.String() + fmt.Sprintf(`"%d":{"items":{"$ref":"#/$defs/0"}}}}`, n)
}

// The deepest value and the longest chain that are taken together fit on the stack.
func TestCheckOfTheDeepest(t *testing.T) {
	s := compile(t, chained(maxChain-2))
	s.most *= 10
	list := strings.Repeat("[", maxArgumentsDepth-1) + strings.Repeat("]", maxArgumentsDepth-1)
	if faults, err := s.Check(json.RawMessage(`{"x":` + list + `}`)); err != nil || len(faults) > 0 {
		t.Errorf("%v, %v", faults, err)
	}
}

// What a schema may be: its own words are kept.
func TestCompileSchemaTakes(t *testing.T) {
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string","format":"uri"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/tool","$defs":{"a b":{"$anchor":"here"}},"items":{"$ref":"#here"},"not":{"$ref":"#/$defs/a%20b"}}`,
		`{"properties":{"format":{"type":"string"},"enum":{"type":"array"}},"default":{"format":1}}`,
		`{"properties":{"x":{"$ref":"#"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`,
		`{"x-order":["a"],"nullable":true,"example":{"type":"objekt"}}`,
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
		"many names":   {`{"type":"object","properties":{"x":{"required":["` + many("n", 10_000) + `"]}}}`, `{"x":{"` + strings.ReplaceAll(many("b", 1000), ",", ":1,") + `":1}}`},
		"many unequal": {`{"properties":{"x":{"anyOf":[` + strings.Repeat(`{"not":{"uniqueItems":true}},`, 20) + `false]}}}`, list},
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

// many are n different names, as they stand in a list of texts.
func many(name string, n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint(name, i)
	}
	return strings.Join(all, `","`)
}

// What a model reads says what would be right.
func TestFaults(t *testing.T) {
	for schema, tests := range map[string]map[string]string{
		`{"properties":{"a":{"type":["integer","null"]},"b":true},"additionalProperties":false}`: {
			`{"a":1.5}`: "at /a: got number, want null or integer",
			`{"c":1}`:   "at /: additional properties 'c' not allowed, there are 'a', 'b'",
		},
		`{"properties":{"a":{"items":{"minimum":2,"maximum":4,"multipleOf":0.5}}}}`: {
			`{"a":[2,1]}`:    "at /a/1: minimum: got 1, want 2 or more",
			`{"a":[5]}`:      "at /a/0: maximum: got 5, want 4 or less",
			`{"a":[2.7]}`:    "at /a/0: multipleOf: got 2.7, want a multiple of 0.5",
			`{"a":[1e9999]}`: "at /a/0: maximum: got 1e9999, want 4 or less",
		},
		`{"properties":{"a/b":{"exclusiveMinimum":1,"exclusiveMaximum":2}}}`: {
			`{"a/b":1}`: "at /a~1b: exclusiveMinimum: got 1, want more than 1",
			`{"a/b":2}`: "at /a~1b: exclusiveMaximum: got 2, want less than 2",
		},
		`{"properties":{"a":{"minLength":2,"maxLength":3,"pattern":"^\\u00e9"}}}`: {
			`{"a":"é"}`:    "at /a: minLength: got 1 characters, want 2 at least",
			`{"a":"éééé"}`: "at /a: maxLength: got 4 characters, want 3 at most",
			`{"a":"eé"}`:   "at /a: \"eé\" does not match the pattern ^\\u00e9",
		},
		`{"properties":{"a":{"minItems":1,"maxItems":2,"uniqueItems":true,"contains":{"type":"string"}}}}`: {
			`{"a":["x","x"]}`: "at /a: uniqueItems: items 0 and 1 are equal",
			`{"a":["x",1,2]}`: "at /a: maxItems: got 3 items, want 2 at most",
			`{"a":[1]}`:       "at /a: contains: got 0 items of the kind that must be there, want 1 at least",
		},
		`{"oneOf":[{"required":["a"]},{"required":["b"]}],"dependentRequired":{"c":["d"]},"propertyNames":{"maxLength":1},"properties":{"n":{"not":{"type":"null"}},"e":{"enum":[1,"x",{"y":null}]}}}`: {
			`{}`:               "at /: oneOf: fits none of 2 alternatives",
			`{"a":1,"b":1}`:    "at /: oneOf: the value fits alternatives 1 and 2 of 2, and may fit only one",
			`{"a":1,"c":1}`:    "at /: missing property 'd' beside 'c'",
			`{"a":1,"cc":1}`:   "at /: propertyNames: 'cc' is no name of a property here: maxLength: got 2 characters, want 1 at most",
			`{"a":1,"n":null}`: "at /n: not: the value is of the kind that is excluded",
			`{"a":1,"e":2}`:    `at /e: value must be one of 1, "x", {"y":null}`,
		},
		`{"allOf":[{"properties":{"a":true}}],"unevaluatedProperties":false}`: {`{"a":1,"b":1}`: "at /b: nothing may stand here"},
	} {
		s := compile(t, schema)
		for arguments, want := range tests {
			faults, err := s.Check(json.RawMessage(arguments))
			if err != nil || len(faults) == 0 || faults[0].String() != want {
				t.Errorf("%s of %s: %v, %v, want %s", arguments, schema, faults, err, want)
			}
		}
	}
}

// Arguments that are none are an error.
func TestCheckRefuses(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	for _, raw := range []string{``, `{`, `{} {}`, `{"a":1e99999999999999999999}`, `{"a":` + strings.Repeat("1", maxNumber+1) + `}`} {
		if faults, err := s.Check(json.RawMessage(raw)); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%.30q: %v, %v", raw, faults, err)
		}
	}
}
