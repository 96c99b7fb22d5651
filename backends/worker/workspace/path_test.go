package workspace

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestName(t *testing.T) {
	r := open(t, nil)
	for p, want := range map[string]string{
		"":                                  ".",
		".":                                 ".",
		"/../" + r.Dir():                    ".",
		r.Dir():                             ".",
		r.Dir() + "/":                       ".",
		r.Dir() + "/a/b":                    "a/b",
		r.Dir() + "/x/../a":                 "a",
		"a":                                 "a",
		"./a//b/":                           "a/b",
		"a/../b":                            "b",
		"...":                               "...",
		"..a":                               "..a",
		"a b\nc":                            "a b\nc",
		"bytes:%FF/x":                       "\xff/x",
		"bytes:bytes%3Ax":                   "bytes:x",
		"bytes:%2e":                         ".",
		"a/bytes:%41":                       "a/bytes:%41",
		"bytes:" + r.Dir() + "/%C3":         "\xc3",
		"bytes:a%0Ab":                       "a\nb",
		"é":                                 "é",
		strings.Repeat("a/", 2000) + "../b": strings.Repeat("a/", 1999) + "b",
	} {
		if got, err := r.Name(p); err != nil || got != want {
			t.Errorf("Name(%.60q) = %.60q, %v, want %.60q", p, got, err, want)
		}
	}
	for p, kind := range map[string]tool.Kind{
		"..":                           tool.PathOutsideRoot,
		"../x":                         tool.PathOutsideRoot,
		"a/../../x":                    tool.PathOutsideRoot,
		"/":                            tool.PathOutsideRoot,
		"/etc/passwd":                  tool.PathOutsideRoot,
		r.Dir() + "x":                  tool.PathOutsideRoot,
		r.Dir() + "/..":                tool.PathOutsideRoot,
		filepath.Dir(r.Dir()):          tool.PathOutsideRoot,
		"bytes:%2e%2e/x":               tool.PathOutsideRoot,
		"bytes:/etc":                   tool.PathOutsideRoot,
		"a\x00b":                       tool.InvalidParams,
		"bytes:%00":                    tool.InvalidParams,
		"bytes:%":                      tool.InvalidParams,
		"bytes:%4":                     tool.InvalidParams,
		"bytes:%gg":                    tool.InvalidParams,
		strings.Repeat("a", MaxPath+1): tool.InvalidParams,
	} {
		_, err := r.Name(p)
		if tool.KindOf(err) != kind {
			t.Errorf("Name(%.60q): %v, want kind %s", p, err, kind)
		}
	}
}

func TestNameThroughAnAlias(t *testing.T) {
	r := open(t, nil)
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, r.Dir(), alias)
	a, err := Open(alias)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if a.Dir() != r.Dir() {
		t.Errorf("the directory is %s, not %s", a.Dir(), r.Dir())
	}
	for _, p := range []string{alias + "/x", r.Dir() + "/x"} {
		if got, err := a.Name(p); err != nil || got != "x" {
			t.Errorf("Name(%q) = %q, %v", p, got, err)
		}
	}
}

// TestFormat: every name survives, and is text.
func TestFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
			rapid.Map(rapid.String(), func(s string) string { return "bytes:" + s })).Draw(t, "name")
		formatted := Format(name)
		if !utf8.ValidString(formatted) {
			t.Fatalf("%q is not UTF-8", formatted)
		}
		if got, err := Parse(formatted); err != nil || got != name {
			t.Fatalf("%q comes back as %q, %v", name, got, err)
		}
		if utf8.ValidString(name) && !strings.HasPrefix(name, "bytes:") && formatted != name {
			t.Fatalf("%q is written as %q", name, formatted)
		}
	})
}
