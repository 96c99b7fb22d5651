package rpc

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc/frame"
	"github.com/caisson-dev/caisson/rpc/protocol"
	"github.com/caisson-dev/caisson/session"
)

// TestEveryMethodIsAnswered keeps the protocol's table and the handlers' alike.
func TestEveryMethodIsAnswered(t *testing.T) {
	var want []string
	for _, m := range protocol.Methods() {
		if m.Direction == protocol.ToServer && !m.Notification {
			want = append(want, m.Name)
		}
	}
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(methods())); !slices.Equal(got, want) {
		t.Fatalf("handlers are\n%v\nmethods are\n%v", got, want)
	}
}

// TestKindsHaveCodes: each kind of error has a code of its own, and is a kind
// of the sessions' errors.
func TestKindsHaveCodes(t *testing.T) {
	seen := map[protocol.Code]protocol.Kind{}
	for _, kind := range protocol.Kind("").Values() {
		code := kind.Code()
		if other, taken := seen[code]; taken {
			t.Errorf("%s and %s have the code %d", kind, other, code)
		}
		seen[code] = kind
	}
	for _, kind := range tool.Kinds() {
		if kind == tool.InvalidParams {
			continue // it has JSON-RPC's own code
		}
		if !slices.Contains(protocol.Kind("").Values(), protocol.Kind(kind)) {
			t.Errorf("the protocol has no kind %q", kind)
		}
	}
}

// TestSharedLists: what the protocol says again, so that it imports nothing, is
// what the rooms behind it say.
func TestSharedLists(t *testing.T) {
	for _, kind := range protocol.Kind("").Values() {
		if !tool.Kind(kind).Valid() {
			t.Errorf("errors have no kind %q", kind)
		}
	}
	var groups []protocol.ToolGroup
	for _, g := range tool.Groups() {
		groups = append(groups, protocol.ToolGroup(g))
	}
	if got := protocol.ToolGroup("").Values(); !slices.Equal(got, groups) {
		t.Errorf("the protocol's groups are %q, and the tools' %q", got, groups)
	}
	if protocol.MaxPendingNotifications != frame.MaxQueued {
		t.Errorf("clients are told that %d notifications may wait, and %d may", protocol.MaxPendingNotifications, frame.MaxQueued)
	}
	if got := session.MaxWait.Milliseconds(); got != protocol.MaxWaitMs {
		t.Errorf("clients are told that a wait takes at most %d ms, and it takes %d", protocol.MaxWaitMs, got)
	}
}

// schemas checks values against the generated schema, so that what the service
// really sends is what clients are told to expect.
type schemas struct {
	root    *jsonschema.Schema
	results map[string]string // by method, the definition of the result
	params  map[string]string // by notification, the definition of the parameters
	checked map[string]*jsonschema.Resolved
}

func newSchemas(t *testing.T) *schemas {
	t.Helper()
	s := &schemas{root: new(jsonschema.Schema), results: map[string]string{}, params: map[string]string{}, checked: map[string]*jsonschema.Resolved{}}
	if err := json.Unmarshal([]byte(protocol.Schema()), s.root); err != nil {
		t.Fatal(err)
	}
	for _, m := range protocol.Methods() {
		if m.Result != nil {
			s.results[m.Name] = reflect.TypeOf(m.Result).Name()
		}
		if m.Direction != protocol.ToServer && m.Params != nil {
			s.params[m.Name] = reflect.TypeOf(m.Params).Name()
		}
	}
	return s
}

// check validates a decoded value against a definition, strictly: members that
// the definition does not know are refused, at the top.
func (s *schemas) check(definition string, value any) error {
	resolved := s.checked[definition]
	if resolved == nil {
		// Resolving costs as much as there are definitions.
		used := map[string]*jsonschema.Schema{}
		s.collect(s.root.Defs[definition], definition, used)
		var err error
		wrapper := &jsonschema.Schema{Ref: "#/$defs/" + definition, Defs: used}
		if resolved, err = wrapper.CloneSchemas().Resolve(nil); err != nil {
			return err
		}
		s.checked[definition] = resolved
	}
	if object, ok := value.(map[string]any); ok {
		for name := range object {
			if s.root.Defs[definition].Properties[name] == nil {
				return fmt.Errorf("%s has no member %s", definition, name)
			}
		}
	}
	return resolved.Validate(value)
}

// collect finds the definitions that one refers to, itself included.
func (s *schemas) collect(d *jsonschema.Schema, name string, used map[string]*jsonschema.Schema) {
	if used[name] != nil {
		return
	}
	used[name] = d
	var walk func(*jsonschema.Schema)
	walk = func(d *jsonschema.Schema) {
		if d == nil {
			return
		}
		if name, ok := strings.CutPrefix(d.Ref, "#/$defs/"); ok {
			s.collect(s.root.Defs[name], name, used)
		}
		for _, p := range d.Properties {
			walk(p)
		}
		walk(d.Items)
		walk(d.AdditionalProperties)
	}
	walk(d)
}
