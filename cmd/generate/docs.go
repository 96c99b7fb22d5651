package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// docs are the comments of a package's types and fields, and its table of codes.
type docs struct {
	types  map[string]string            // by type
	fields map[string]map[string]string // by type and field
	codes  []code
}

// code is one numeric error code.
type code struct {
	name  string // without the prefix Code
	value int
	doc   string
}

// readDocs parses the sources of one package.
func readDocs(dir string) (*docs, error) {
	d := &docs{types: map[string]string{}, fields: map[string]map[string]string{}}
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(paths)
	set := token.NewFileSet()
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := parser.ParseFile(set, path, source, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, decl := range parsed.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok {
				d.add(gen)
			}
		}
	}
	if len(d.codes) == 0 {
		return nil, fmt.Errorf("%s has no table of codes", dir)
	}
	return d, nil
}

func (d *docs) add(gen *ast.GenDecl) {
	for _, spec := range gen.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			d.addType(gen, spec)
		case *ast.ValueSpec:
			d.addCode(spec)
		}
	}
}

func (d *docs) addType(gen *ast.GenDecl, spec *ast.TypeSpec) {
	name := spec.Name.Name
	comment := spec.Doc
	if comment == nil {
		comment = gen.Doc
	}
	fields := map[string]string{}
	d.fields[name] = fields
	renames := map[string]string{}
	body, _ := spec.Type.(*ast.StructType)
	if body != nil {
		for _, field := range body.Fields.List {
			for _, id := range field.Names {
				renames[id.Name] = jsonName(field)
			}
		}
		for _, field := range body.Fields.List {
			text := field.Doc.Text() + field.Comment.Text()
			for _, id := range field.Names {
				fields[id.Name] = prose(text, renames)
			}
		}
	}
	d.types[name] = prose(comment.Text(), renames)
}

// addCode keeps a constant of type Code.
func (d *docs) addCode(spec *ast.ValueSpec) {
	if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != "Code" || len(spec.Values) != 1 {
		return
	}
	minus, ok := spec.Values[0].(*ast.UnaryExpr)
	if !ok {
		return
	}
	literal, ok := minus.X.(*ast.BasicLit)
	if !ok {
		return
	}
	value, err := strconv.Atoi(literal.Value)
	if err != nil {
		return
	}
	d.codes = append(d.codes, code{
		name:  strings.TrimPrefix(spec.Names[0].Name, "Code"),
		value: -value,
		doc:   strings.TrimSpace(spec.Comment.Text()),
	})
}

func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	_, tag, _ = strings.Cut(tag, `json:"`)
	name, _, _ := strings.Cut(tag, `"`)
	name, _, _ = strings.Cut(name, ",")
	return name
}

var (
	docLink = regexp.MustCompile(`\[\*?([A-Za-z.]+)\]`)
	word    = regexp.MustCompile(`\b[A-Z][A-Za-z]*\b`)
)

// prose makes a Go comment readable beside JSON: links become names, and the
// struct's fields are called as they are written in JSON.
func prose(text string, renames map[string]string) string {
	text = docLink.ReplaceAllString(strings.TrimSpace(text), "$1")
	return word.ReplaceAllStringFunc(text, func(w string) string {
		if name := renames[w]; name != "" {
			return name
		}
		return w
	})
}
