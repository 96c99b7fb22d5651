//go:build linux

package worker_test

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
)

func TestInitialize(t *testing.T) {
	o := options(t)
	start(t, o)
	parent, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(parent, "link")
	if err := os.Symlink(parent, link); err != nil {
		t.Fatal(err)
	}
	c := client(t, o.Listen)
	_, err = c.Call(t.Context(), wire.MethodProcessList, nil, nil)
	wantWord(t, "a request before initialize", err, "before initialize")
	c = client(t, o.Listen)
	got, err := c.Initialize(t.Context(), binding(filepath.Join(link, "deep", "root")))
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(parent, "deep", "root")
	if got.Root != root || got.Version != wire.Version {
		t.Errorf("initialized %+v, want the root %s", got, root)
	}
	if !slices.Equal(got.Capabilities, worker.Capabilities()) {
		t.Errorf("capabilities %q", got.Capabilities)
	}
	info, err := os.Stat(root)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the root was made as %v, %v", info, err)
	}
}

func TestInitializeRefuses(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	for _, c := range []struct {
		name   string
		change func(*wire.Initialize)
		word   string
	}{
		{"relative root", func(in *wire.Initialize) { in.Root = "work" }, "absolute"},
		{"session with a slash", func(in *wire.Initialize) { in.Session = "a/b" }, "component"},
		{"session of dots", func(in *wire.Initialize) { in.Session = ".." }, "component"},
		{"identity of dots", func(in *wire.Initialize) { in.Identity = ".." }, "component"},
		{"another session", func(in *wire.Initialize) { in.Session = "s2" }, "serves the session"},
		{"missing workspace", func(in *wire.Initialize) {
			in.Root, in.RequireExistingWorkspace = filepath.Join(root, "gone"), true
		}, "not there"},
		{"a file", func(in *wire.Initialize) { in.Root = "/etc/passwd" }, "not a directory"},
		{"a variable without a name", func(in *wire.Initialize) { in.Environment = map[string]string{"A=B": ""} }, "variable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := binding(root)
			c.change(&in)
			conn := client(t, o.Listen)
			_, err := conn.Initialize(t.Context(), in)
			wantWord(t, "initialize", err, c.word)
			if e := (*tool.Error)(nil); tool.KindOf(err) == tool.EnvironmentLost && (!errors.As(err, &e) || e.Hint == "") {
				t.Errorf("%v says nothing about what to do", err)
			}
		})
	}
	// None of them has bound the worker.
	connect(t, o, root)
}

// A binding never changes; what a host that comes back may leave out or add is
// no change.
func TestBinding(t *testing.T) {
	o := options(t)
	start(t, o)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	first := connect(t, o, root)
	if _, err := first.Call(t.Context(), wire.MethodProcessList, nil, nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func(*wire.Initialize)
		word   string // of the refusal
	}{
		{"equal", func(*wire.Initialize) {}, ""},
		{"no environment", func(in *wire.Initialize) { in.Environment = nil }, ""},
		{"existing workspace required", func(in *wire.Initialize) { in.RequireExistingWorkspace = true }, ""},
		{"rotated variable", func(in *wire.Initialize) { in.Environment = map[string]string{"GIVEN": "other"} }, "environment"},
		{"empty environment", func(in *wire.Initialize) { in.Environment = map[string]string{} }, ""},
		{"another root", func(in *wire.Initialize) { in.Root = filepath.Dir(root) }, "root"},
		{"another identity", func(in *wire.Initialize) { in.Identity = "caisson-2" }, "identity"},
		{"removal", func(in *wire.Initialize) { in.RemoveWorkspaceOnExit = true }, "remove_workspace_on_exit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := binding(root)
			in.Environment = maps.Clone(in.Environment)
			c.change(&in)
			_, err := client(t, o.Listen).Initialize(t.Context(), in)
			if c.word != "" {
				wantKind(t, "initialize", err, tool.Denied, "another "+c.word)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
	// The refusals did not hurt the first connection.
	if _, err := first.Call(t.Context(), wire.MethodProcessList, nil, nil); err != nil {
		t.Error(err)
	}
}

func TestToken(t *testing.T) {
	o := options(t)
	start(t, o)
	root := t.TempDir()
	short := wire.NewClient(dial(t, o.Listen), wire.ClientOptions{Token: "short"})
	t.Cleanup(func() { short.Close() })
	_, err := short.Initialize(t.Context(), binding(root))
	wantWord(t, "a short token", err, "token")
	connect(t, o, root)
	other := wire.NewClient(dial(t, o.Listen), wire.ClientOptions{Token: token[1:] + "0"})
	t.Cleanup(func() { other.Close() })
	_, err = other.Initialize(t.Context(), binding(root))
	wantWord(t, "another token", err, "token")
}

func TestCeiling(t *testing.T) {
	o := options(t)
	o.Mode, o.Ceiling = tool.ReadOnly, tool.ReadOnly
	start(t, o)
	c := connect(t, o, t.TempDir())
	for _, mode := range []tool.Mode{tool.Standard, tool.Unconfined} {
		_, err := c.Call(t.Context(), wire.MethodProcessStart,
			tool.StartRequest{OperationID: "o", Command: "true", Actor: "s1", PermissionMode: mode}, nil)
		wantKind(t, "start as "+string(mode), err, tool.Denied, "ceiling")
		_, err = c.Call(t.Context(), wire.MethodExecute,
			wire.Execute{Call: wire.ToolCall{Name: "bash", Arguments: `{"command":"true"}`}, Actor: "s1", PermissionMode: mode}, nil)
		wantKind(t, "execute as "+string(mode), err, tool.Denied, "ceiling")
	}
	_, err := c.Call(t.Context(), wire.MethodExecute,
		wire.Execute{Call: wire.ToolCall{Name: "bash", Arguments: `{"command":"true"}`}, Actor: "s1", PermissionMode: "root"}, nil)
	wantKind(t, "an unknown mode", err, tool.InvalidParams, "unknown permission mode")
	_, err = c.Call(t.Context(), wire.MethodExecute,
		wire.Execute{Call: wire.ToolCall{Name: "bash", Arguments: `{"command":"true"}`}}, nil)
	wantKind(t, "no actor", err, tool.InvalidParams, "actor")
}

func TestOptions(t *testing.T) {
	good := worker.Options{Listen: "/tmp/s", State: "/tmp/state", Session: "s"}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*worker.Options){
		"no state":           func(o *worker.Options) { o.State = "" },
		"no session":         func(o *worker.Options) { o.Session = "" },
		"session of dots":    func(o *worker.Options) { o.Session = ".." },
		"mode above ceiling": func(o *worker.Options) { o.Mode = tool.Unconfined },
		"unknown mode":       func(o *worker.Options) { o.Mode = "root" },
		"relative socket":    func(o *worker.Options) { o.Listen = "s" },
		"negative output":    func(o *worker.Options) { o.MaxOutputBytes = -1 },
	} {
		o := good
		change(&o)
		if o.Check() == nil {
			t.Errorf("%s is let through", name)
		}
	}
}
