package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/caisson-dev/caisson/backends/profile"
)

// configDoc is written by hand but for its tables, each of which stands between
// two marks.
const configDoc = "session/config/CONFIG.md"

// configuration renews the tables of the documentation below root.
func configuration(root string, schema *jsonschema.Schema) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(configDoc)))
	if err != nil {
		return nil, err
	}
	for _, t := range []struct{ name, rows string }{{"file", fileTable(schema)}, {"profile", profileTable()}} {
		if text, err = splice(text, t.name, t.rows); err != nil {
			return nil, err
		}
	}
	return text, nil
}

// splice puts the table between the marks of its name.
func splice(text []byte, name, table string) ([]byte, error) {
	begin, end := fmt.Sprintf("<!-- table %s: written by make generate -->\n", name), "<!-- end -->\n"
	before, rest, ok := bytes.Cut(text, []byte(begin))
	_, after, closed := bytes.Cut(rest, []byte(end))
	if !ok || !closed {
		return nil, fmt.Errorf("%s has no place for the table %s", configDoc, name)
	}
	return slices.Concat(before, []byte(begin+"\n"+table+"\n"+end), after), nil
}

// profileTable has a row for each member of a profile.
func profileTable() string {
	var b strings.Builder
	b.WriteString("| member | backends | value | |\n|---|---|---|---|\n")
	for _, m := range profile.References() {
		mark := ""
		if m.Identity {
			mark = " •"
		}
		fmt.Fprintf(&b, "| `%s`%s | %s | %s | %s |\n", m.Name, mark, m.Backends, valueOf(m.Value), cell(m.Doc))
	}
	return b.String()
}

// fileTable has a row for each member of the file, those of profiles aside.
func fileTable(s *jsonschema.Schema) string {
	var b strings.Builder
	b.WriteString("| member | value | |\n|---|---|---|\n")
	fileRows(&b, "", s)
	return b.String()
}

func fileRows(b *strings.Builder, prefix string, s *jsonschema.Schema) {
	for _, name := range s.PropertyOrder {
		p := s.Properties[name]
		path := prefix + name
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", path, valueOf(p), cell(p.Description))
		if p.Items != nil {
			fileRows(b, path+"[].", p.Items)
		}
		fileRows(b, path+".", p)
	}
}

// valueOf tells what a value may be, in few words.
func valueOf(s *jsonschema.Schema) string {
	switch {
	case len(s.Enum) > 0:
		return join(s.Enum, ", ", func(v any) string { return fmt.Sprintf("`%v`", v) })
	case len(s.OneOf) > 0:
		return join(s.OneOf, " or ", valueOf)
	case s.Items != nil && s.Items.Type != "":
		return "list of " + s.Items.Type + "s"
	case s.Items != nil:
		return "list of " + valueOf(s.Items)
	case s.Type == "":
		return "anything"
	case s.Type == "integer":
		return "whole number"
	case s.Type == "boolean":
		return "`true`, `false`"
	}
	return s.Type
}

// cell is text that keeps to one cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
