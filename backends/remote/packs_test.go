package remote

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// packed is a far end that has packs, and keeps the sources that it is given.
func packed(asked *[]wire.PackAdd, bodies *[]string) *far {
	f := newFar(append(slices.Clone(ourCaps), wire.CapPacks)...)
	kept := map[string]bool{}
	f.on(wire.MethodPacksAdd, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		var in wire.PackAdd
		if err := r.Decode(&in); err != nil {
			return wire.Response{}, err
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		*asked, *bodies = append(*asked, in), append(*bodies, string(r.Body))
		if in.SHA256 != "" && r.Body == nil && !kept[in.SHA256] {
			return wire.Response{Data: wire.PackAdded{NeedSource: true}}, nil
		}
		kept[in.SHA256] = true
		return wire.Response{Data: wire.PackAdded{Tools: []tool.Description{{Name: in.Name}}}}, nil
	})
	return f
}

// Packs are added before anything else happens, with the source where it is not
// there yet; again after each connect.
func TestPacks(t *testing.T) {
	var asked []wire.PackAdd
	var bodies []string
	f := packed(&asked, &bodies)
	b := binding()
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("the source"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.Packs = []tool.Pack{
		{Name: "one", Command: []string{"one", "x"}},
		{Name: "two", Command: []string{"sh", "${source}"}, SHA256: strings.Repeat("a", 64), Source: source},
	}
	e := open(t, f, b, Options{})
	f.says(wire.MethodToolsList, wire.ToolList{}, nil)
	if _, err := e.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	if !slices.Equal(bodies, []string{"", "", "the source"}) || asked[0].Name != "one" || !slices.Equal(asked[0].Command, []string{"one", "x"}) || asked[2].SHA256 != b.Packs[1].SHA256 {
		t.Errorf("it was asked %+v with %q", asked, bodies)
	}
	if first := f.requests[:3]; !slices.Equal(first, []string{wire.MethodPacksAdd, wire.MethodPacksAdd, wire.MethodPacksAdd}) {
		t.Errorf("requests %q", f.requests)
	}
	asked, bodies = nil, nil
	conn := f.conns[len(f.conns)-1]
	f.mu.Unlock()
	// The source may be gone by now; the far end has it.
	if err := errors.Join(os.Remove(source), conn.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Tools(t.Context()); err != nil && tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatal(err)
	}
	if _, err := e.Tools(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.Equal(bodies, []string{"", ""}) {
		t.Errorf("after a reconnect it was asked with %q", bodies)
	}
}

// A far end that cannot have a pack is not used without it.
func TestPacksRefused(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	here := tool.Pack{Name: "demo", Command: []string{"demo"}}
	from := func(path string) tool.Pack {
		return tool.Pack{Name: "demo", Command: []string{"demo"}, SHA256: strings.Repeat("a", 64), Source: path}
	}
	for name, test := range map[string]struct {
		pack   tool.Pack
		change func(f *far)
		kind   tool.Kind
		want   string
	}{
		"no capability": {here, func(f *far) { f.caps = ourCaps }, tool.Unsupported, wire.CapPacks},
		"no bodies": {from(empty), func(f *far) {
			f.caps = slices.DeleteFunc(slices.Clone(f.caps), func(c string) bool { return c == wire.CapBulk })
		}, tool.Unsupported, wire.CapBulk},
		"not listed": {here, func(f *far) {
			f.on(wire.MethodPacksAdd, func(context.Context, *wire.Request) (wire.Response, error) {
				return wire.Response{}, tool.Errorf(tool.Unsupported, "it ended with exit code 1")
			})
		}, tool.Unsupported, "exit code 1"},
		"asks for no source": {here, func(f *far) { f.says(wire.MethodPacksAdd, wire.PackAdded{NeedSource: true}, nil) }, tool.ProtocolMismatch, "source"},
		"asks twice": {from(filepath.Join(dir, "full")), func(f *far) {
			if err := os.WriteFile(filepath.Join(dir, "full"), []byte("x"), 0o600); err != nil {
				t.Error(err)
			}
			f.says(wire.MethodPacksAdd, wire.PackAdded{NeedSource: true}, nil)
		}, tool.ProtocolMismatch, "source"},
		"too many": {here, func(f *far) {
			f.says(wire.MethodPacksAdd, wire.PackAdded{Tools: make([]tool.Description, maxTools+1)}, nil)
		}, tool.ProtocolMismatch, "tools"},
		"an empty source": {from(empty), func(*far) {}, tool.ConfigInvalid, "0 bytes"},
		"no source":       {from(filepath.Join(dir, "gone")), func(*far) {}, tool.ConfigInvalid, "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []wire.PackAdd
			var bodies []string
			f := packed(&asked, &bodies)
			test.change(f)
			b := binding()
			b.Packs = []tool.Pack{test.pack}
			e, err := Open(t.Context(), f, b, nil, Options{})
			if err == nil {
				t.Fatal(errors.Join(errors.New("it opened"), e.Detach(t.Context())))
			}
			wantKind(t, err, test.kind)
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "demo") {
				t.Errorf("%v", err)
			}
			f.serves.Wait()
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.removed != 1 || f.dialled != 1 {
				t.Errorf("removed %d times, dialled %d", f.removed, f.dialled)
			}
		})
	}
}
