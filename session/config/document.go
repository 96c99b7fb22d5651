package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tailscale/hujson"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/diskfile"
)

// MaxFile is the largest configuration file, in bytes. It is parsed whole, and
// a project's may come from anybody.
const MaxFile = 1 << 20

// maxDepth is how many objects and lists may stand around one value: they are
// parsed by recursion.
const maxDepth = 64

// document is a parsed file that can tell where its members stand.
type document struct {
	name string
	file []byte // as it stands in the file
	text []byte // without a byte order mark
	tree hujson.Value
	json []byte // the same offsets, comments and trailing commas blanked
}

// read parses the file. A file that is not there gives nil and no error.
func read(name string) (*document, *Error) {
	f, _, err := diskfile.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		link := dangling(name)
		if link == "" {
			return nil, nil
		}
		err = fmt.Errorf("cannot be read: the link %s leads nowhere", link)
	}
	if err != nil {
		return nil, &Error{File: name, Message: reason(err)}
	}
	defer f.Close()
	return parseFile(name, f)
}

// parseFile parses an open file, whose name stands for it in errors.
func parseFile(name string, f *os.File) (*document, *Error) {
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(&limited{f, MaxFile}); err != nil {
		return nil, &Error{File: name, Message: reason(err)}
	}
	return parse(name, buf.Bytes())
}

// dangling is the link on the way to a file that is not there, or the file
// itself, that leads nowhere; "" when there is none. Whoever made the link has
// a configuration, which is away for now.
func dangling(name string) string {
	for {
		info, err := os.Lstat(name)
		if err == nil {
			if _, err := os.Stat(name); err != nil && info.Mode()&os.ModeSymlink != 0 {
				return name
			}
			return ""
		}
		above := filepath.Dir(name)
		if above == name {
			return ""
		}
		name = above
	}
}

// reason takes the path out of an error that is printed beside it.
func reason(err error) string {
	if errors.Is(err, diskfile.ErrNotRegular) {
		return "is not a regular file"
	}
	var p *os.PathError
	if errors.As(err, &p) {
		return fmt.Sprintf("cannot %s: %v", p.Op, p.Err)
	}
	return err.Error()
}

// limited fails, rather than end early, behind n bytes.
type limited struct {
	f *os.File
	n int
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.f.Read(p)
	if l.n -= n; l.n < 0 {
		return 0, fmt.Errorf("is larger than %d bytes", MaxFile)
	}
	return n, err
}

func parse(name string, text []byte) (*document, *Error) {
	d := &document{name: name, file: text, text: bytes.TrimPrefix(text, []byte("\ufeff"))}
	if !utf8.Valid(d.text) {
		return nil, d.errorAt(invalidUTF8(d.text), nil, "is not valid UTF-8")
	}
	if len(bytes.TrimSpace(d.text)) == 0 {
		return nil, d.errorAt(0, nil, "is empty: write {} for a configuration without settings")
	}
	if offset, deep := tooDeep(d.text); deep {
		return nil, d.errorAt(offset, nil, "is nested deeper than %d levels", maxDepth)
	}
	// The last line may be a comment, which wants its end.
	tree, err := hujson.Parse(append(bytes.Clone(d.text), '\n'))
	if err != nil {
		return nil, d.syntax(err)
	}
	d.tree = tree
	standard := tree.Clone()
	standard.Standardize()
	d.json = standard.Pack()
	return d, nil
}

func invalidUTF8(text []byte) int {
	at := 0
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 {
			break
		}
		at, text = at+n, text[n:]
	}
	return at
}

// tooDeep finds the bracket that opens one level too many. It need not know
// more of the grammar than what hides brackets: strings and comments.
func tooDeep(text []byte) (offset int, deep bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch rest := text[i:]; {
		case rest[0] == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case bytes.HasPrefix(rest, []byte("//")):
			i += endOf(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			i += endOf(rest, "*/")
		case rest[0] == '[' || rest[0] == '{':
			if depth++; depth > maxDepth {
				return i, true
			}
		case rest[0] == ']' || rest[0] == '}':
			depth--
		}
	}
	return 0, false
}

// endOf is where a comment ends.
func endOf(comment []byte, mark string) int {
	if i := bytes.Index(comment[2:], []byte(mark)); i >= 0 {
		return 2 + i
	}
	return len(comment)
}

// position is how hujson says where a syntax error is; columns count bytes.
var position = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^hujson: line (\d+), column (\d+): (?s)(.*)$`) })

func (d *document) syntax(err error) *Error {
	m := position().FindStringSubmatch(err.Error())
	if m == nil {
		return d.errorAt(0, nil, "%v", err)
	}
	line, _ := strconv.Atoi(m[1])
	column, _ := strconv.Atoi(m[2])
	offset := 0
	for range line - 1 {
		end := bytes.IndexByte(d.text[offset:], '\n')
		if end < 0 {
			offset = len(d.text) // in the line that was added
			break
		}
		offset += end + 1
	}
	return d.errorAt(min(offset+column-1, len(d.text)), nil, "%s", m[3])
}

// decode reads the document into v, strictly.
func (d *document) decode(v any) *Error {
	if err := d.noNull(); err != nil {
		return err
	}
	err := jsonv2.Unmarshal(d.json, v, jsonv2.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		path := segments(syntax.JSONPointer)
		if errors.Is(err, jsontext.ErrDuplicateName) && len(path) > 0 {
			return d.errorAt(d.offsetOf(path, true), path, "%q stands here twice", path[len(path)-1])
		}
		return d.errorAt(int(syntax.ByteOffset), path, "%v", syntax.Err)
	}
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) {
		return d.errorAt(0, nil, "%v", err)
	}
	path := segments(semantic.JSONPointer)
	switch {
	case errors.Is(err, jsonv2.ErrUnknownName) && len(path) > 0:
		name := path[len(path)-1]
		e := d.problem(path, "unknown member %q", name)
		e.Suggestion = profile.Nearest(name, membersOf(semantic.GoType))
		return e
	case semantic.Err != nil && semantic.JSONValue == nil && !errors.Is(semantic.Err, strconv.ErrRange):
		return d.problem(path, "%v", semantic.Err)
	}
	return d.problem(path, "must be %s", describe(semantic.GoType))
}

// noNull refuses null, which says nothing and hides mistakes.
func (d *document) noNull() *Error {
	for v := range d.tree.All() {
		if v.Value.Kind() == 'n' {
			return d.errorAt(v.StartOffset, d.pathAt(v.StartOffset), "null has no meaning here: leave the member out")
		}
	}
	return nil
}

// pathAt finds the path of the value that begins at the offset.
func (d *document) pathAt(offset int) profile.Path {
	var path profile.Path
	v := &d.tree
	for v != nil && v.StartOffset != offset {
		var next *hujson.Value
		switch t := v.Value.(type) {
		case *hujson.Object:
			for i := range t.Members {
				if m := &t.Members[i]; m.Value.StartOffset <= offset && offset < m.Value.EndOffset {
					path, next = append(path, m.Name.Value.(hujson.Literal).String()), &m.Value
				}
			}
		case *hujson.Array:
			for i := range t.Elements {
				if e := &t.Elements[i]; e.StartOffset <= offset && offset < e.EndOffset {
					path, next = append(path, strconv.Itoa(i)), e
				}
			}
		}
		v = next
	}
	return path
}

// offsetOf finds where the member stands, or the nearest one around it that
// is there. Of a doubled name it finds the last, when told so.
func (d *document) offsetOf(path profile.Path, last bool) int {
	v, offset := &d.tree, d.tree.StartOffset
	for i, name := range path {
		var next *hujson.Value
		switch t := v.Value.(type) {
		case *hujson.Object:
			for j := range t.Members {
				m := &t.Members[j]
				if m.Name.Value.(hujson.Literal).String() == name && (next == nil || last && i == len(path)-1) {
					next, offset = &m.Value, m.Name.StartOffset
				}
			}
		case *hujson.Array:
			if j, err := strconv.Atoi(name); err == nil && j < len(t.Elements) {
				next, offset = &t.Elements[j], t.Elements[j].StartOffset
			}
		}
		if next == nil {
			break
		}
		v = next
	}
	return offset
}

// problem makes an error about the member at path.
func (d *document) problem(path profile.Path, format string, args ...any) *Error {
	return d.errorAt(d.offsetOf(path, false), path, format, args...)
}

func (d *document) errorAt(offset int, path profile.Path, format string, args ...any) *Error {
	before := d.text[:min(offset, len(d.text))]
	lineStart := bytes.LastIndexByte(before, '\n') + 1
	return &Error{
		File:    d.name,
		Line:    1 + bytes.Count(before, []byte("\n")),
		Column:  1 + utf8.RuneCount(before[lineStart:]),
		Path:    path.String(),
		Message: fmt.Sprintf(format, args...),
	}
}

func segments(p jsontext.Pointer) profile.Path {
	var path profile.Path
	for s := range p.Tokens() {
		path = append(path, s)
	}
	return path
}

// membersOf lists the JSON names of a struct's fields.
func membersOf(t reflect.Type) []string {
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for f := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(f).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// describe says what a Go type is in the words of JSON.
func describe(t reflect.Type) string {
	if t == nil {
		return "something else"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Int, reflect.Int64:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	default:
		return "an object"
	}
}
