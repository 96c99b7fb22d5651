package plugins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// modules is what "runs" modules: a double that answers what the module's text says.
type modules struct {
	asked []backends.ModuleRequest
	fail  error
}

func (m *modules) RunModule(_ context.Context, r backends.ModuleRequest) (backends.ModuleResult, error) {
	m.asked = append(m.asked, r)
	if m.fail != nil {
		return backends.ModuleResult{}, m.fail
	}
	text, err := os.ReadFile(r.Path)
	if err != nil {
		return backends.ModuleResult{}, err
	}
	out := backends.ModuleResult{Stdout: bytes.TrimPrefix(text, []byte(ModuleHead)), FuelRemaining: 42}
	if bytes.HasPrefix(out.Stdout, []byte("exit")) {
		out.ExitCode, out.Stderr = 1, []byte("it broke")
	}
	return out, nil
}

func (m *modules) runner() (backends.ModuleRunner, error) { return m, nil }

// bench is a store with a clock of its own.
type bench struct {
	*Store
	t   *testing.T
	now time.Time
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, now: time.Now()}
	var err error
	if b.Store, err = Open(filepath.Join(t.TempDir(), "plugins"), func() time.Time { return b.now }); err != nil {
		t.Fatal(err)
	}
	return b
}

// module puts a module that answers with the text.
func (b *bench) module(answer string) string {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "m.wasm")
	if err := os.WriteFile(file, []byte(ModuleHead+answer), 0o644); err != nil {
		b.t.Fatal(err)
	}
	sum, err := b.Put(b.t.Context(), file, MaxModule, ModuleHead)
	if err != nil {
		b.t.Fatal(err)
	}
	return sum
}

func lists(names ...string) string {
	var tools []string
	for _, n := range names {
		tools = append(tools, fmt.Sprintf(`{"name":%q,"description":"d"}`, n))
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]}`
}

// register registers a module that has the tools.
func (b *bench) register(name string, tools ...string) (Plugin, error) {
	b.t.Helper()
	p := Plugin{Name: name, RegisteredAt: b.now}
	p.SHA256 = b.module(lists(tools...) + strings.Repeat(" ", len(name)))
	var err error
	if p.Tools, err = b.Tools(b.t.Context(), p.SHA256, name, (&modules{}).runner); err != nil {
		b.t.Fatal(err)
	}
	return p, b.Register(b.t.Context(), p)
}

func TestPut(t *testing.T) {
	b := newBench(t)
	sum := b.module("x")
	if want := sha256.Sum256([]byte(ModuleHead + "x")); sum != hex.EncodeToString(want[:]) {
		t.Errorf("the hash is %s", sum)
	}
	if again := b.module("x"); again != sum {
		t.Errorf("again it is %s", again)
	}
	file, err := b.Blob(sum)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != ModuleHead+"x" {
		t.Errorf("%q, %v", got, err)
	}
	if runtime.GOOS != "windows" {
		for path, want := range map[string]os.FileMode{file: 0o600, filepath.Dir(file): 0o700, b.dir: 0o700} {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
	dir := t.TempDir()
	other := filepath.Join(dir, "other")
	if err := os.WriteFile(other, []byte("#!/bin/sh\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		other: "not a WebAssembly module", filepath.Join(dir, "nothing"): "cannot be used", dir: "not a regular file",
	} {
		if _, err := b.Put(t.Context(), path, MaxModule, ModuleHead); tool.KindOf(err) != tool.ConfigInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := b.Put(t.Context(), other, 5, ""); err == nil || !strings.Contains(err.Error(), "longer than 5 bytes") {
		t.Errorf("too long: %v", err)
	}
	entries, err := os.ReadDir(b.path("blobs"))
	if err != nil || len(entries) != 1 {
		t.Errorf("what failed is left: %v, %v", entries, err)
	}
	for _, bad := range []string{"", "../../etc/passwd", strings.Repeat("0", 64)} {
		if _, err := b.Blob(bad); err == nil {
			t.Errorf("a blob of %q", bad)
		}
	}
}

// A module is asked once, by whoever comes first.
func TestTools(t *testing.T) {
	b := newBench(t)
	m := &modules{}
	sum := b.module(lists("one", "two"))
	for range 2 {
		got, err := b.Tools(t.Context(), sum, "it", m.runner)
		if err != nil || len(got) != 2 || got[1].Name != "two" || got[1].Group != tool.GroupPlugins {
			t.Fatalf("%+v, %v", got, err)
		}
	}
	if len(m.asked) != 1 {
		t.Fatalf("it was asked %d times", len(m.asked))
	}
	if r := m.asked[0]; string(r.Stdin) != `{"action":"list"}`+"\n" || r.Mode != tool.ReadOnly || r.SHA256 != sum || r.Timeout == 0 || r.MaxOutputBytes == 0 {
		t.Errorf("asked %+v", r)
	}
	// A listing of another version of the program is made anew.
	if err := os.WriteFile(b.path("listings", sum+".json"), []byte(`{"format":0}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := b.Tools(t.Context(), sum, "it", m.runner); err != nil || len(got) != 2 || len(m.asked) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
	for answer, want := range map[string]string{
		"hello":      "cannot be used",
		"exit":       "did not list its tools: it ended with exit code 1 and said: it broke",
		lists("a b"): "cannot be its name",
		`{"tools":[{"name":"a","description":"d","inputSchema":{"type":"object","$ref":"http://x"}}]}`: "the schema of a refers to",
	} {
		bad := b.module(answer)
		for range 2 { // a failure is not kept
			if _, err := b.Tools(t.Context(), bad, "it", m.runner); tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", answer, err)
			}
		}
	}
	last := b.module("y")
	m.fail = tool.Errorf(tool.GuestFailed, "the module %s is out of fuel", b.Path(last))
	if _, err := b.Tools(t.Context(), last, "y.wasm", m.runner); tool.KindOf(err) != tool.GuestFailed || err.Error() != "the module y.wasm is out of fuel" {
		t.Errorf("%v", err)
	}
}

func TestRegister(t *testing.T) {
	b := newBench(t)
	if _, err := b.register("one", "a", "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.register("two", "c"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.register("three", "b"); tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), `"one" and "three" both have a tool called b`) {
		t.Errorf("a tool that there is: %v", err)
	}
	if _, err := b.register("../x", "d"); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a name that leads away: %v", err)
	}
	// The same name replaces.
	replaced, err := b.register("one", "a", "e")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open(b.dir, nil) // another service
	if err != nil {
		t.Fatal(err)
	}
	all, err := other.List()
	if err != nil || len(all) != 2 || all[0].SHA256 != replaced.SHA256 || len(all[0].Tools) != 2 || all[1].Name != "two" {
		t.Fatalf("%+v, %v", all, err)
	}
	if err := other.Remove(t.Context(), "tow"); tool.KindOf(err) != tool.ToolNotFound {
		t.Errorf("%v", err)
	} else if e := new(tool.Error); !errors.As(err, &e) || !strings.Contains(e.Hint, `"two"`) {
		t.Errorf("hint %q", e.Hint)
	}
	if err := other.Remove(t.Context(), "two"); err != nil {
		t.Fatal(err)
	}
	if all, err := b.List(); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	// A torn record stops, and says where.
	if err := os.WriteFile(b.record("torn"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := b.List(); err == nil || !strings.Contains(err.Error(), "torn.json") {
		t.Errorf("%v", err)
	}
}

// Two services that register at the same time both succeed or say why.
func TestRegisterAtOnce(t *testing.T) {
	b := newBench(t)
	errs := make(chan error)
	for i := range 8 {
		go func() {
			s, err := Open(b.dir, nil)
			if err == nil {
				sum := sha256.Sum256([]byte{byte(i)})
				p := Plugin{Name: fmt.Sprint("p", i), SHA256: hex.EncodeToString(sum[:])}
				err = errors.Join(os.WriteFile(s.blob(p.SHA256), nil, 0o600), s.Register(context.Background(), p))
			}
			errs <- err
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if all, err := b.List(); err != nil || len(all) != 8 {
		t.Errorf("%d, %v", len(all), err)
	}
}

// A module goes when nobody has it and some time has passed, with its listing.
func TestSweep(t *testing.T) {
	b := newBench(t)
	named, err := b.register("named", "a")
	if err != nil {
		t.Fatal(err)
	}
	removed, err := b.register("removed", "b")
	if err != nil {
		t.Fatal(err)
	}
	needed, err := b.register("needed", "c")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Remove(t.Context(), "removed"), b.Remove(t.Context(), "needed")); err != nil {
		t.Fatal(err)
	}
	has := func(p Plugin) bool {
		_, blob := b.Blob(p.SHA256)
		_, listing := b.listing(p.SHA256)
		if (blob == nil) != (listing == nil) {
			t.Errorf("%s: %v, but %v", p.Name, blob, listing)
		}
		return blob == nil
	}
	session := map[string]bool{needed.SHA256: true}
	for _, step := range []struct {
		after time.Duration
		stays bool
	}{{0, true}, {youth - time.Minute, true}, {2 * time.Minute, false}} {
		b.now = b.now.Add(step.after)
		if err := b.Sweep(t.Context(), session); err != nil {
			t.Fatal(err)
		}
		if !has(named) || !has(needed) || has(removed) != step.stays {
			t.Errorf("after %v: named %t, needed %t, removed %t", step.after, has(named), has(needed), has(removed))
		}
	}
	// What somebody asks for again is young again.
	b.now = b.now.Add(2 * youth)
	if err := errors.Join(b.Hold(t.Context(), needed.SHA256), b.Sweep(t.Context(), nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Blob(needed.SHA256); err != nil {
		t.Error(err)
	}
	if err := b.Hold(t.Context(), removed.SHA256); tool.KindOf(err) != tool.EnvironmentLost || !strings.Contains(err.Error(), removed.SHA256) {
		t.Errorf("%v", err)
	}
}

func TestCall(t *testing.T) {
	b := newBench(t)
	m := &modules{}
	sum := b.module(`{"ok":true,"result":"done"}`)
	r := tool.Request{ID: "c1", Name: "do", Arguments: []byte(`{"a":1}`), Mode: tool.ReadOnly, Timeout: time.Second, MaxOutputBytes: 100}
	got, err := b.Call(t.Context(), m, sum, r)
	if err != nil || got.Content[0].Text != "done" || *got.FuelRemaining != 42 {
		t.Errorf("%+v, %v", got, err)
	}
	if q := m.asked[0]; string(q.Stdin) != `{"action":"run","name":"do","arguments":{"a":1}}`+"\n" || q.Mode != tool.ReadOnly || q.Timeout != time.Second || q.MaxOutputBytes != 100 || q.ID != "c1" {
		t.Errorf("asked %+v", q)
	}
	for answer, want := range map[string]string{
		"exit":                                "do failed: it ended with exit code 1 and said: it broke",
		"hello":                               "do cannot be understood: ",
		`{"ok":false,"error":"no such word"}`: "no such word",
	} {
		got, err := b.Call(t.Context(), m, b.module(answer), r)
		if err != nil || !got.IsError || !strings.HasPrefix(got.Content[0].Text, want) || *got.FuelRemaining != 42 {
			t.Errorf("%s: %+v, %v", answer, got, err)
		}
	}
	m.fail = &tool.Error{Kind: tool.GuestFailed, Reason: tool.OutOfFuel, Message: "the module " + sum + " was stopped"}
	_, err = b.Call(t.Context(), m, sum, r)
	if e := new(tool.Error); !errors.As(err, &e) || e.Reason != tool.OutOfFuel || e.Message != "the module do was stopped" {
		t.Errorf("%v", err)
	}
	if err := os.Remove(b.blob(sum)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Call(t.Context(), m, sum, r); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("%v", err)
	}
}
