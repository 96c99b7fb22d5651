package config

import (
	"reflect"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/backends/profile"
)

// Schema describes the user's file. It is made from the types that the file is
// decoded into and the table of a profile's members.
func Schema() (*jsonschema.Schema, error) {
	names := &jsonschema.Schema{Type: "string"}
	profiles := profile.Schema()
	s, err := jsonschema.For[file](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[duration](): profile.DurationSchema(),
		reflect.TypeFor[argv](): {OneOf: []*jsonschema.Schema{
			{Type: "string"}, {Type: "array", Items: &jsonschema.Schema{Type: "string"}},
		}},
		reflect.TypeFor[ordered[string]](): {Type: "object", AdditionalProperties: names},
		reflect.TypeFor[ordered[writtenProfile]](): {
			Type:                 "object",
			PropertyNames:        &jsonschema.Schema{Pattern: profile.NamePattern, Not: &jsonschema.Schema{Enum: []any{profile.Local}}},
			AdditionalProperties: profiles,
		},
	}})
	if err != nil {
		return nil, err
	}
	withoutNull(s)
	rule := s.Properties["guard"].Properties["rules"].Items
	rule.Properties["action"].Enum = []any{"allow", "confirm", "deny"}
	rule.Properties["actors"].Items.Enum = []any{"main", "subagent", "side_chat"}
	s.Schema = "https://json-schema.org/draft/2020-12/schema"
	s.Title = "Caisson configuration"
	return s, nil
}

// withoutNull takes "null" out of the types: in Go a slice or a pointer may be
// nil, in the file a null is refused.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) > 0 && s.Types[0] == "null" {
		if len(s.Types) == 2 {
			s.Type = s.Types[1]
		}
		s.Types = nil
	}
	for _, p := range s.Properties {
		withoutNull(p)
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
}
