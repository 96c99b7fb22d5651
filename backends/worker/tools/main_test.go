package tools

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a set of tools on a workspace of its own.
type bench struct {
	t testing.TB
	*Set
	dir string
}

// newBench makes a workspace with the files.
func newBench(t testing.TB, files map[string]string, change ...func(*Options)) *bench {
	t.Helper()
	dir := t.TempDir()
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	exports := NewExports(filepath.Join(t.TempDir(), "exports"))
	t.Cleanup(func() {
		if err := exports.Close(); err != nil {
			t.Error(err)
		}
		root.Close()
	})
	o := Options{Root: root, Exports: exports}
	for _, f := range change {
		f(&o)
	}
	b := &bench{t, New(o), root.Dir()}
	for name, content := range files {
		b.put(name, content)
	}
	return b
}

func (b *bench) put(name, content string) {
	b.t.Helper()
	p := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) get(name string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, name))
	if err != nil {
		b.t.Fatal(err)
	}
	return string(content)
}

// args is the arguments of a call.
type args map[string]any

// call calls a tool that must not fail and returns the structured content.
func (b *bench) call(name string, a args) map[string]any {
	b.t.Helper()
	r := b.result(name, a)
	if r.IsError {
		b.t.Fatalf("%s %v: %s", name, a, r.Content[0].Text)
	}
	var out map[string]any
	if len(r.StructuredContent) > 0 {
		if err := json.Unmarshal(r.StructuredContent, &out); err != nil {
			b.t.Fatal(err)
		}
	}
	return out
}

func (b *bench) result(name string, a args) tool.Result {
	b.t.Helper()
	r, err := b.Call(b.t.Context(), request(b.t, name, a))
	if err != nil {
		b.t.Fatalf("%s %v: %v", name, a, err)
	}
	if size := len(r.StructuredContent); size > tool.MaxResultBytes {
		b.t.Errorf("%s: a result of %d bytes", name, size)
	}
	return r
}

// refused calls a tool that must tell the model words.
func (b *bench) refused(words, name string, a args) {
	b.t.Helper()
	r := b.result(name, a)
	if !r.IsError {
		b.t.Errorf("%s %v: it is done, %s", name, a, r.StructuredContent)
	} else if !strings.Contains(r.Content[0].Text, words) {
		b.t.Errorf("%s %v: %q does not say %q", name, a, r.Content[0].Text, words)
	}
}

// fails calls a tool that must fail with a kind.
func (b *bench) fails(kind tool.Kind, r tool.Request) error {
	b.t.Helper()
	_, err := b.Call(b.t.Context(), r)
	if err == nil || tool.KindOf(err) != kind {
		b.t.Errorf("%s %s: %v, want kind %s", r.Name, r.Arguments, err, kind)
	}
	return err
}

func request(t testing.TB, name string, a args) tool.Request {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return tool.Request{Name: name, Arguments: raw}
}

// only are the arguments that the tool takes.
func (a args) only(t testing.TB, name string) args {
	t.Helper()
	for _, d := range Descriptions() {
		if d.Name != name {
			continue
		}
		var schema struct{ Properties map[string]any }
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil {
			t.Fatal(err)
		}
		kept := args{}
		for argument, v := range a {
			if schema.Properties[argument] != nil {
				kept[argument] = v
			}
		}
		return kept
	}
	return a
}

func want(t testing.TB, got map[string]any, members args) {
	t.Helper()
	for name, value := range members {
		g, err := json.Marshal(got[name])
		if err != nil {
			t.Fatal(err)
		}
		w, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		if string(g) != string(w) {
			t.Errorf("%s is %.200s, want %.200s", name, g, w)
		}
	}
}

func openRoot(t testing.TB, dir string) *workspace.Root {
	t.Helper()
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}
