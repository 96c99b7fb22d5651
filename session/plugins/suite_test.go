package plugins

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// The official suite. What a schema of a tool may not be is refused when it is
// compiled, and all else is checked as the suite has it.
func TestSuite(t *testing.T) {
	type group struct {
		Description string
		Schema      json.RawMessage
		Tests       []struct {
			Description string
			Data        json.RawMessage
			Valid       bool
		}
	}
	// The limits of this checker that schemas of the suite run into.
	limits := []string{"is not an object", "references must stay within it", "a second $id", "is not supported", "where no schema is", "which is not there"}
	for file, least := range map[string]int{"draft7": 700, "draft2020-12": 950} {
		t.Run(file, func(t *testing.T) {
			raw, err := os.ReadFile("testdata/suite/" + file + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var suite map[string][]group
			if err := json.Unmarshal(raw, &suite); err != nil {
				t.Fatal(err)
			}
			checked := 0
			for name, groups := range suite {
				for _, g := range groups {
					schema := g.Schema
					if file == "draft7" && schema[0] == '{' && !strings.Contains(string(schema), `"$schema"`) {
						schema = append([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#",`), schema[1:]...)
						schema = bytes.Replace(schema, []byte(",}"), []byte("}"), 1)
					}
					s, err := CompileSchema(schema)
					if err != nil {
						if !containsAny(err.Error(), limits) {
							t.Errorf("%s, %s: %v", name, g.Description, err)
						}
						continue
					}
					for _, test := range g.Tests {
						checked++
						all, err := s.Check(test.Data)
						if err != nil || (len(all) == 0) != test.Valid {
							t.Errorf("%s, %s, %s: faults %v, error %v, want valid %v", name, g.Description, test.Description, all, err, test.Valid)
						}
					}
				}
			}
			if checked < least {
				t.Errorf("%d tests were run, want %d", checked, least)
			}
		})
	}
}

func containsAny(s string, all []string) bool {
	for _, part := range all {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

var uris = map[draft]string{
	draft4: "http://json-schema.org/draft-04/schema#", draft6: "http://json-schema.org/draft-06/schema#",
	draft7: "http://json-schema.org/draft-07/schema#", draft2019: "https://json-schema.org/draft/2019-09/schema",
	draft2020: "https://json-schema.org/draft/2020-12/schema",
}

// Any schema is taken or refused, and any value fits or does not, as another
// implementation has it.
func TestAgainstAnother(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]draft{draft4, draft6, draft7, draft2019, draft2020}).Draw(t, "draft")
		schema := schemaOf(t, d, 3).(map[string]any)
		schema["$schema"] = uris[d]
		schema["definitions"] = map[string]any{"a": schemaOf(t, d, 1), "b": schemaOf(t, d, 1)}
		raw, err := json.Marshal(schema)
		if err != nil {
			t.Fatal(err)
		}
		theirs, refused := another(raw)
		ours, err := CompileSchema(raw)
		if err != nil && strings.Contains(err.Error(), "refers to itself") {
			return // it would not come back from all of these
		}
		if (err != nil) != (refused != nil) {
			t.Fatalf("%s:\nours %v\ntheirs %v", raw, err, refused)
		}
		if err != nil {
			return
		}
		for range 8 {
			value, err := json.Marshal(valueOf(t, 3))
			if err != nil {
				t.Fatal(err)
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
			if err != nil {
				t.Fatal(err)
			}
			want := theirs.Validate(doc)
			all, err := ours.Check(value)
			if err != nil || (len(all) == 0) != (want == nil) {
				t.Fatalf("%s of\n%s:\nours %v, %v\ntheirs %v", value, raw, all, err, want)
			}
			if !fitsQuietly(ours, value) != (want != nil) {
				t.Fatalf("%s of\n%s: another answer when nobody listens", value, raw)
			}
		}
	})
}

func fitsQuietly(s *Schema, raw []byte) bool {
	v, err := decode(raw)
	k := check{left: s.most, unevaluated: s.unevaluated}
	return err == nil && k.fits(s.root, v, nil, nil, nil)
}

func another(raw []byte) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("test:schema", doc); err != nil {
		return nil, err
	}
	return c.Compile("test:schema")
}

var (
	someNames   = rapid.SampledFrom([]string{"a", "b", "aa", "é"})
	someNumbers = rapid.SampledFrom([]json.Number{"0", "-0.0", "1", "1.0", "-1", "2", "2.5", "0.5", "1e2", "100", "3", "0.1", "0.3", "9007199254740993", "1e-7"})
	someCounts  = rapid.SampledFrom([]json.Number{"0", "1", "2", "2.0", "3"})
)

func valueOf(t *rapid.T, level int) any {
	kinds := 6
	if level == 0 {
		kinds = 4
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "boolean")
	case 2:
		return someNumbers.Draw(t, "number")
	case 3:
		return someNames.Draw(t, "text")
	case 4:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, valueOf(t, level-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		object[someNames.Draw(t, "name")] = valueOf(t, level-1)
	}
	return object
}

// schemaOf is a schema that is mostly right.
func schemaOf(t *rapid.T, d draft, level int) any {
	if d > draft4 && rapid.IntRange(0, 9).Draw(t, "boolean") == 0 && level < 3 {
		return rapid.Bool().Draw(t, "schema")
	}
	s := map[string]any{}
	for range rapid.IntRange(0, 4).Draw(t, "keywords") {
		name, v := keywordOf(t, d, level)
		if name == "$ref" && d <= draft7 {
			return map[string]any{name: v} // theirs does not leave out all that stands beside it
		}
		s[name] = v
	}
	return s
}

func keywordOf(t *rapid.T, d draft, level int) (string, any) {
	below := func() any { return schemaOf(t, d, max(0, level-1)) }
	list := func() any {
		all := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			all = append(all, below())
		}
		return all
	}
	members := func() any {
		all := map[string]any{}
		for range rapid.IntRange(0, 2).Draw(t, "members") {
			all[someNames.Draw(t, "name")] = below()
		}
		return all
	}
	names := func() any {
		return rapid.SliceOfNDistinct(someNames, 1, 3, rapid.ID[string]).Draw(t, "names")
	}
	leaves := []string{"type", "types", "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
		"minLength", "maxLength", "pattern", "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "required", "$ref", "title", "minContains", "maxContains", "dependentRequired"}
	inner := []string{"items", "additionalItems", "itemList", "prefixItems", "contains", "properties", "patternProperties", "additionalProperties", "propertyNames",
		"dependencies", "dependentSchemas", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties"}
	if level > 0 {
		leaves = append(leaves, inner...)
	}
	name := rapid.SampledFrom(leaves).Draw(t, "keyword")
	switch name {
	case "type":
		return name, rapid.SampledFrom([]string{"null", "boolean", "integer", "number", "string", "array", "object", "object", "array", "any"}).Draw(t, "type")
	case "types":
		return "type", rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"null", "boolean", "integer", "number", "string", "array", "object"}), 1, 3, rapid.ID[string]).Draw(t, "types")
	case "enum":
		return name, []any{valueOf(t, 1), "other"}
	case "const":
		return name, valueOf(t, 2)
	case "minimum", "maximum", "multipleOf":
		return name, someNumbers.Draw(t, "limit")
	case "exclusiveMinimum", "exclusiveMaximum":
		if d == draft4 {
			return "minimum", someNumbers.Draw(t, "limit") // theirs wants both members
		}
		return name, someNumbers.Draw(t, "limit")
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains":
		return name, someCounts.Draw(t, "limit")
	case "pattern":
		return name, rapid.SampledFrom([]string{"^a", "b$", "[", "é"}).Draw(t, "pattern")
	case "uniqueItems":
		return name, rapid.Bool().Draw(t, "unique")
	case "required":
		return name, names()
	case "dependentRequired":
		return name, map[string]any{someNames.Draw(t, "name"): names()}
	case "$ref":
		return name, rapid.SampledFrom([]string{"#/definitions/a", "#/definitions/b"}).Draw(t, "target")
	case "title":
		return name, "x"
	case "itemList":
		return "items", list()
	case "prefixItems", "allOf", "anyOf", "oneOf":
		return name, list()
	case "properties", "dependentSchemas":
		return name, members()
	case "patternProperties":
		return name, map[string]any{"^a": below()}
	case "dependencies":
		if rapid.Bool().Draw(t, "names only") {
			return name, map[string]any{someNames.Draw(t, "name"): names()}
		}
		return name, members()
	}
	return name, below()
}
