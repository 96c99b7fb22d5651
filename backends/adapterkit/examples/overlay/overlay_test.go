package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
)

// The test binary is the adapter too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "overlay" {
		os.Args = os.Args[1:]
		main()
		return
	}
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, lower string) backends.Environment {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	e, err := command.New(command.Options{}).Open(t.Context(), backends.Binding{
		Session: "s", Environment: "caisson-1",
		Profile: profile.Profile{
			Backend: profile.Command, Workspace: "/workspace", Command: []string{self, "overlay", "-lower", lower},
			Timeout: time.Minute, ShutdownTimeout: time.Minute,
		},
		Secrets: backends.Secrets{Token: strings.Repeat("5e", 32)},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Detach(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return e
}

type args map[string]any

func try(t *testing.T, e backends.Environment, name string, a args) (map[string]any, error) {
	t.Helper()
	raw, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Call(t.Context(), tool.Request{ID: "c", Name: name, Arguments: raw})
	if err != nil {
		return nil, err
	}
	if r.IsError {
		return nil, errors.New(r.Content[0].Text)
	}
	var out map[string]any
	raw = r.StructuredContent
	if len(raw) == 0 {
		raw = []byte(r.Content[0].Text)
	}
	return out, json.Unmarshal(raw, &out)
}

func TestOverlay(t *testing.T) {
	lower := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(lower, "d"), 0o755), os.WriteFile(filepath.Join(lower, "d/low.txt"), []byte("one\ntwo\n"), 0o644), os.Symlink("/etc", filepath.Join(lower, "out"))); err != nil {
		t.Fatal(err)
	}
	e := open(t, lower)
	call := func(name string, a args) map[string]any {
		t.Helper()
		out, err := try(t, e, name, a)
		if err != nil {
			t.Fatalf("%s %v: %v", name, a, err)
		}
		return out
	}
	if got := call("read_file", args{"path": "d/low.txt", "offset": 2}); got["content"] != "two\n" || got["total_lines"] != 2.0 {
		t.Errorf("read %v", got)
	}
	call("edit_file", args{"path": "/workspace/d/low.txt", "old_text": "two", "new_text": "2"})
	call("write_file", args{"path": "d/e/new.txt", "content": "new"})
	call("write_file", args{"path": "top", "content": "x"})
	if got := call("read_file", args{"path": "d/low.txt"}); got["content"] != "one\n2\n" {
		t.Errorf("read %v", got)
	}
	if disk, err := os.ReadFile(filepath.Join(lower, "d/low.txt")); err != nil || string(disk) != "one\ntwo\n" {
		t.Errorf("on disk %q, %v", disk, err)
	}
	for dir, want := range map[string][]string{"": {"d/", "out", "top"}, "d": {"e/", "low.txt"}, "d/e": {"new.txt"}} {
		var names []string
		for _, v := range call("list_files", args{"path": dir})["entries"].([]any) {
			entry := v.(map[string]any)
			name := entry["name"].(string)
			if entry["is_dir"] == true {
				name += "/"
			}
			names = append(names, name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q lists %v, want %v", dir, names, want)
		}
	}
	for name, list := range map[string][]args{
		"read_file":        {{"path": "../x"}, {"path": "/etc/passwd"}, {"path": "out/passwd"}, {"path": "none"}, {"path": "d"}},
		"write_file":       {{"path": "/etc/x"}, {"path": "d"}, {"path": "top", "create_only": true}},
		"edit_file":        {{"path": "top", "old_text": "y"}, {"path": "none", "old_text": "x"}},
		"list_files":       {{"path": "top"}},
		"present_artifact": {{"path": "none"}},
	} {
		for _, a := range list {
			if got, err := try(t, e, name, a); err == nil {
				t.Errorf("%s %v: %v", name, a, got)
			}
		}
	}
	token := call("present_artifact", args{"path": "top"})["execution_export"].(string)
	call("write_file", args{"path": "top", "content": "changed"})
	r, err := e.Export(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(r); string(data) != "x" || errors.Join(err, r.Close()) != nil {
		t.Errorf("exported %q, %v", data, err)
	}
}

// TestOneWorld: files that no command could see go with no commands.
func TestOneWorld(t *testing.T) {
	e := open(t, "")
	if slices.Contains(e.Info().Capabilities, wire.CapProcessStart) {
		t.Errorf("it announces %v", e.Info().Capabilities)
	}
	for _, name := range []string{"bash", "git", "process"} {
		if got, err := try(t, e, name, args{"command": "true", "action": "list"}); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Command: "true", Actor: "s"}); tool.KindOf(err) != tool.Unsupported {
		t.Errorf("process/start: %v", err)
	}
	if _, err := e.Processes().List(t.Context()); err == nil {
		t.Error("process/list was answered")
	}
}
