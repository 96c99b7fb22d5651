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

// A fault is told with its place.
func TestCheck(t *testing.T) {
	const schema = `{
		"type": "object", "additionalProperties": false, "required": ["path", "mode"],
		"properties": {
			"path": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
			"mode": {"enum": ["fast", "slow"]},
			"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}, "maxItems": 3},
			"when": {"type": "string", "format": "date"},
			"size": {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "auto"}]},
			"pair": {"prefixItems": [true, {"type": "string"}]},
			"more": {"additionalProperties": {"type": "string"}},
			"a/b~": {"type": "string"},
			"free": {"$ref": "#/$defs/any"},
			"one": {"oneOf": [{"required": ["text"]}, {"required": ["file"]}]},
			"some": {"contains": {"type": "string"}},
			"gone": false,
			"none": {"not": {"enum": ["a", "b"]}}
		},
		"$defs": {"row": {"type": "object", "properties": {"n": {"type": "integer"}, "rows": {"items": {"$ref": "#/$defs/row"}}}}, "any": true}
	}`
	tests := map[string]struct {
		arguments string // beside what is required
		want      string // "path: part of the message", "" for nothing
	}{
		"right":               {`"rows":[{"n":1}],"size":"auto","free":[1]`, ""},
		"formats are notes":   {`"when":"yesterday"`, ""},
		"no such member":      {`"other":1`, `: unexpected additional properties ["other"]`},
		"not of the values":   {`"mode":"quick"`, "/mode: enum: quick does not equal any of: [fast slow]"},
		"too short":           {`"path":""`, "/path: minLength"},
		"an element's member": {`"rows":[{"n":1},{"n":"1"}]`, `/rows/*/n: type: 1 has type "string", want "integer"`},
		"deeper":              {`"rows":[{"rows":[{"n":true}]}]`, `/rows/*/rows/*/n: type: true has type "boolean", want "integer"`},
		"an element":          {`"pair":[1,2]`, `/pair/1: type: 2 has type "integer", want "string"`},
		"any member":          {`"more":{"x":1}`, `/more/*: type: 1 has type "integer", want "string"`},
		"a name with signs":   {`"a/b~":1`, `/a~1b~0: type`},
		"nothing of two":      {`"one":{}`, `/one: oneOf: must fit one of {"required":["text"]}, {"required":["file"]}`},
		"both of two":         {`"one":{"text":1,"file":1}`, `/one: oneOf: must fit only one of {"required":["text"]}, {"required":["file"]}`},
		"no such element":     {`"some":[1]`, `/some: contains: must have an item that fits {"type":"string"}`},
		"what it may not be":  {`"none":"a"`, `/none: not: must not fit {"enum":["a","b"]}`},
		"what is never right": {`"gone":1`, "/gone: nothing may be there"},
		"alternatives":        {`"size":0`, "/size: anyOf: did not validate against any of [… …]:; validating /properties/size/anyOf/0: minimum"},
	}
	s := compile(t, schema)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			arguments := `{"path":"a","mode":"fast",` + test.arguments + `}`
			fault, err := s.Check(json.RawMessage(arguments))
			if err != nil {
				t.Fatal(err)
			}
			path, part, some := strings.Cut(test.want, ": ")
			if some != (fault != nil) || some && (fault.Path != path || !strings.Contains(fault.Message, part)) {
				t.Errorf("fault %v, want %s", fault, test.want)
			}
		})
	}
	fault, err := s.Check(json.RawMessage(`{}`))
	if err != nil || fault == nil || !strings.Contains(fault.String(), `at /: required: missing properties: ["path" "mode"]`) {
		t.Errorf("nothing that is required: %v, %v", fault, err)
	}
}

func TestRefuse(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	fault, err := s.Check(json.RawMessage(`{"n":"one"}`))
	if err != nil || fault == nil {
		t.Fatal(fault, err)
	}
	r := Refuse("count", fault)
	if text := r.Content[0].String(); !r.IsError || !strings.Contains(text, `at /n: type: one has type "string", want "integer"`) || !strings.Contains(text, "not called") {
		t.Errorf("the model reads %q", text)
	}
}

// What a schema may not be, and what is said of it.
func TestCompileSchemaRefuses(t *testing.T) {
	deep := strings.Repeat(`{"not":`, maxSchemaDepth) + `{}` + strings.Repeat(`}`, maxSchemaDepth)
	for schema, want := range map[string]string{
		`{"type":"objekt"}`:                       "is not a JSON Schema: at /type",
		`{"$ref":"https://example.com/s.json"}`:   "references must stay within it",
		`{"$ref":"other.json#/a"}`:                "references must stay within it",
		`{"$ref":"file:///etc/passwd"}`:           "references must stay within it",
		`{"$schema":"https://example.com/draft"}`: "has the $schema \"https://example.com/draft\", which is not known",
		`{"$schema":4}`:                           "$schema cannot be of type number",
		`{"$ref":"#"}`:                            `refers to itself at "#"`,
		`{"properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"allOf":[{"not":{"$ref":"#/$defs/c"}}]},"c":{"if":true,"then":{"$ref":"#/$defs/b"}}}}`: `refers to itself at "#/$defs/`,
		`{"dependentSchemas":{"a":{"$ref":"#"}}}`:                           `refers to itself at "#"`,
		`{"$ref":"#/examples/0","examples":[{"not":{}}]}`:                   "where no schema is",
		`{"$ref":"#there"}`:                                                 "which is not there",
		`{"$dynamicRef":"#a"}`:                                              "$dynamicRef",
		`{"properties":{"a":{"$id":"b"}}}`:                                  "a second $id",
		`{"properties":{"a":{"pattern":"a{900}b{900}c{900}d{900}e{900}"}}}`: "too large",
		`{"properties":{"a":{"pattern":"(((a{100}){100}){100})"}}}`:         "pattern",
		`{"properties":{"a":{"pattern":"(?=a)"}}}`:                          "at /properties/a/pattern: the pattern (?=a) cannot be used",
		`{"patternProperties":{"(":{}}}`:                                    "at /patternProperties/(: the pattern ( cannot",
		`{"properties":{"a":{"minLength":-1}}}`:                             "at /properties/a/minLength: must be 0 or more, got -1",
		`{"properties":{"a":{"maximum":"1"}}}`:                              "maximum cannot be of type string",
		`{"multipleOf":0}`:                                                  "at /multipleOf: must be more than 0",
		`{"minimum":1e99999999999999999999}`:                                "is not JSON",
		`{"anyOf":[]}`:                                                      "at /anyOf: is an empty array",
		`{"items":[{}]}`:                                                    "at /items: is an array; draft 2020-12 calls that prefixItems",
		`{"properties":{"a":{"type":["string","text"]}}}`:                   `at /properties/a/type: "text" is no type`,
		`{"enum":[` + strings.Repeat("0,", maxParts) + `0]}`:                "has more than 20000 parts",
		`{"properties":{"` + strings.Repeat("a", maxPointer) + `":{}}}`:     "has names of more than",
		chained(maxChain + 2):                                               "within each other",
		deep:                                                                "nests deeper",
		`[]`:                                                                "is not an object",
		`{"a":1`:                                                            "is not JSON",
		`{"$schema":"http://json-schema.org/draft-04/schema#"}`:             "may be draft 2020-12 or draft-07",
		`{"type":3}`:                                                        "type",
		`{"properties":{"a":null}}`:                                         "null is no schema",
		`{"items":3}`:                                                       "a schema must be an object or a boolean, got number",
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

// The deepest value with the longest chain at each level would take too much of the
// stack; each alone fits.
func TestCheckOfTheDeepest(t *testing.T) {
	list := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	s := compile(t, chained(maxChain-2))
	if fault, err := s.Check(json.RawMessage(`{"x":` + list(1) + `}`)); err != nil || fault != nil {
		t.Errorf("the longest chain: %v, %v", fault, err)
	}
	if _, err := s.Check(json.RawMessage(`{"x":` + list(maxArgumentsDepth-1) + `}`)); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("both: %v", err)
	}
	s = compile(t, `{"properties":{"x":{"$ref":"#/$defs/list"}},"$defs":{"list":{"items":{"$ref":"#/$defs/list"}}}}`)
	if fault, err := s.Check(json.RawMessage(`{"x":` + list(maxArgumentsDepth-1) + `}`)); err != nil || fault != nil {
		t.Errorf("the deepest value: %v, %v", fault, err)
	}
}

// What a schema may be: its own words are kept.
func TestCompileSchemaTakes(t *testing.T) {
	for _, schema := range []string{
		`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string","format":"uri"}},"properties":{"x":{"$ref":"#/definitions/a"}}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://example.com/tool","$defs":{"a b":{"$anchor":"here"}},"items":{"$ref":"#here"},"not":{"$ref":"#/$defs/a%20b"}}`,
		`{"properties":{"format":{"type":"string"},"enum":{"type":"array"}},"default":{"format":1}}`,
		`{"properties":{"x":{"$ref":"#"}}}`,
		`{"x-order":["a"],"nullable":true,"example":{"type":"objekt"}}`,
	} {
		if _, err := CompileSchema(json.RawMessage(schema)); err != nil {
			t.Errorf("%.80s: %v", schema, err)
		}
	}
	for _, draft := range []string{
		"https://json-schema.org/draft/2020-12/schema", "https://json-schema.org/draft/2020-12/schema#", "http://json-schema.org/draft/2020-12/schema",
		"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema",
	} {
		s := compile(t, `{"$schema":"`+draft+`","properties":{"x":{"type":"string"}}}`)
		if fault, err := s.Check(json.RawMessage(`{"x":"a"}`)); err != nil || fault != nil {
			t.Errorf("%s: %v, %v", draft, fault, err)
		}
	}
	s := compile(t, `{"properties":{"price":{"multipleOf":0.01},"pairs":{"multipleOf":2}}}`)
	if fault, err := s.Check(json.RawMessage(`{"price":19.99,"pairs":4}`)); err != nil || fault != nil {
		t.Errorf("multiples: %v, %v", fault, err)
	}
	if fault, err := s.Check(json.RawMessage(`{"pairs":3}`)); err != nil || fault == nil {
		t.Errorf("no multiple: %v, %v", fault, err)
	}
	s = compile(t, `{"properties":{"format":{"type":"string"}}}`)
	if fault, err := s.Check(json.RawMessage(`{"format":1}`)); fault == nil || err != nil {
		t.Errorf("a property called format: %v, %v", fault, err)
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
			fault, err := s.Check(json.RawMessage(test.arguments))
			if tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "take too much") {
				t.Fatalf("fault %v, error %v", fault, err)
			}
			// The next check has its own effort.
			if fault, err := s.Check(json.RawMessage(`{"y":1}`)); err != nil || fault != nil {
				t.Errorf("afterwards: %v, %v", fault, err)
			}
		})
	}
	s := compile(t, `{"type":"object"}`)
	// Of too many values nothing is read: that these are not whole is not noticed.
	if _, err := s.Check(json.RawMessage(`{"a":[` + strings.Repeat("0,", maxEffort/valueEffort))); err == nil || !strings.Contains(err.Error(), "take too much") {
		t.Errorf("many values: %v", err)
	}
	if _, err := s.Check(json.RawMessage(`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`)); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("deep arguments: %v", err)
	}
}

// What fails is told with all that is wrong, by every level of a schema: also the bytes
// of it are counted, before they are written.
func TestWhatACheckSaysIsBounded(t *testing.T) {
	const alternatives = 10
	either := func(leaf string) string {
		var b strings.Builder
		b.WriteString(`{"type":"object","properties":{"x":{"$ref":"#/$defs/0"}},"$defs":{`)
		for i := range alternatives {
			fmt.Fprintf(&b, `"%d":{"anyOf":[{"$ref":"#/$defs/%[2]d"},{"$ref":"#/$defs/%[2]d"}]},`, i, i+1)
		}
		return b.String() + fmt.Sprintf(`"%d":%s}}`, alternatives, leaf)
	}
	for name, test := range map[string]struct{ schema, x string }{
		"a long text":   {either(`{"type":"integer"}`), `"` + strings.Repeat("a", 50_000) + `"`},
		"in quotes":     {either(`{"maxLength":1}`), `"` + strings.Repeat(`\u0001`, 20_000) + `"`},
		"a long name":   {either(`{"required":["` + strings.Repeat("a", 50_000) + `"]}`), `{}`},
		"many types":    {either(`{"type":["null"` + strings.Repeat(`,"null"`, 5000) + `]}`), `1`},
		"a pattern":     {either(`{"pattern":"` + strings.Repeat("a", 4000) + `"}`), `"b"`},
		"a long anchor": {either(`{"allOf":[{"anyOf":[{"$anchor":"` + strings.Repeat("a", 50_000) + `","type":"null"}]}]}`), `1`},
	} {
		s := compile(t, test.schema)
		if fault, err := s.Check(json.RawMessage(`{"x":` + test.x + `}`)); tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "take too much") {
			t.Errorf("%s: fault %v, error %v", name, fault, err)
		}
	}
	const levels = 100
	id := "https://example.com/" + strings.Repeat("a", 10_000)
	s := compile(t, `{"$id":"`+id+`","type":"object","properties":{"x":{"$ref":"#"}}}`)
	var v any
	if err := json.Unmarshal([]byte(strings.Repeat(`{"x":`, levels)+`1`+strings.Repeat(`}`, levels)), &v); err != nil {
		t.Fatal(err)
	}
	if err := s.resolved.Validate(v); err == nil || len(err.Error()) > 10_000 {
		t.Errorf("with a long $id: %.200v", err)
	}
}

// Numbers are compared as fractions, which takes long for those with many digits.
func TestNumbersCount(t *testing.T) {
	numbers := func(n int, of string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(of, i+1)
		}
		return strings.Join(all, ",")
	}
	const tiny, usual = "%de-300", "%d.25"
	for name, test := range map[string]struct{ schema, x string }{
		"compared": {`{"items":{"enum":[` + numbers(2000, tiny) + `]}}`, numbers(300, tiny)},
		"limited":  {`{"items":{"anyOf":[` + strings.Repeat(`{"maximum":1e-305},`, 50) + `true]}}`, numbers(2000, tiny)},
		"unique":   {`{"allOf":[` + strings.Repeat(`{"uniqueItems":true},`, 5) + `true]}`, numbers(50_000, tiny)},
	} {
		s := compile(t, `{"properties":{"x":`+test.schema+`}}`)
		if fault, err := s.Check(json.RawMessage(`{"x":[` + test.x + `]}`)); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%s: fault %v, error %v", name, fault, err)
		}
	}
	s := compile(t, `{"properties":{"x":{"uniqueItems":true,"items":{"minimum":0.5,"maximum":1e6,"not":{"enum":[`+numbers(20, usual)+`]}}}}}`)
	if fault, err := s.Check(json.RawMessage(`{"x":[` + numbers(10_000, "%d.125") + `]}`)); err != nil || fault != nil {
		t.Errorf("usual numbers: %v, %v", fault, err)
	}
}

// Arguments of an ordinary size fit.
func TestCheckTakesMuch(t *testing.T) {
	s := compile(t, `{"type":"object","properties":{"text":{"type":"string"},"rows":{"items":{"type":"object","required":["a"],"properties":{
		"a":{"type":"integer"},"b":{"type":"string","pattern":"^[a-z]*$"},"c":{"enum":["x","y","z"]}}}}}}`)
	rows := strings.Repeat(`{"a":1,"b":"abc","c":"z"},`, 10_000)
	arguments := `{"text":"` + strings.Repeat("word ", 1<<20) + `","rows":[` + strings.TrimSuffix(rows, ",") + `]}`
	if fault, err := s.Check(json.RawMessage(arguments)); err != nil || fault != nil {
		t.Errorf("%v, %v", fault, err)
	}
	s = compile(t, `{"type":"object","properties":{"content":{"anyOf":[{"type":"array","items":{"type":"object"}},{"type":"string","minLength":1}]}}}`)
	if fault, err := s.Check(json.RawMessage(`{"content":"` + strings.Repeat("word ", 2<<20) + `"}`)); err != nil || fault != nil {
		t.Errorf("an alternative: %v, %v", fault, err)
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

// Arguments that are none are an error.
func TestCheckRefuses(t *testing.T) {
	s := compile(t, `{"type":"object"}`)
	for _, raw := range []string{``, `{`, `{} {}`, `{"a":1e99999999999999999999}`, `{"a":1e9999}`} {
		if fault, err := s.Check(json.RawMessage(raw)); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%.30q: %v, %v", raw, fault, err)
		}
	}
}

// Whatever a tool says of its arguments and whatever a model sends, the answer is one
// of ours.
func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","required":["a"],"properties":{"a":{"enum":[1,"x",null]}},"additionalProperties":false}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"$ref":"#/definitions/a"}],"definitions":{"a":{"multipleOf":0.5}}}`,
		`{"$defs":{"a":{"$anchor":"b","uniqueItems":true,"contains":{"const":{"x":1}}}},"properties":{"x":{"$ref":"#b"}},"unevaluatedProperties":false}`,
		`{"if":{"patternProperties":{"^a":{"minLength":2}}},"then":{"propertyNames":{"pattern":"a"}},"dependentSchemas":{"a":{"not":{}}}}`,
	} {
		f.Add([]byte(schema), []byte(`{"a":1,"x":[1,2.5,{"x":[true]}]}`))
	}
	f.Fuzz(func(t *testing.T, schema, arguments []byte) {
		s, err := CompileSchema(schema)
		if err != nil {
			return
		}
		s.most = maxEffort / 100
		if _, err := s.Check(arguments); err != nil && tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%s of %s: %v", arguments, schema, err)
		}
	})
}
