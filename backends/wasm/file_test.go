package wasm

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// call makes a call of a tool, and returns the result as text.
func call(t testing.TB, e backends.Environment, name string, arguments any) (string, error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	result, err := e.Call(t.Context(), tool.Request{ID: "1", Name: name, Arguments: raw})
	var text strings.Builder
	for _, part := range result.Content {
		text.WriteString(part.String())
	}
	return text.String() + string(result.StructuredContent), err
}

type args = map[string]any

// TestTools works on two directories by the paths that guests have.
func TestTools(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(one, "first.txt"), filepath.Join(two, "second.txt")} {
		if err := os.WriteFile(file, []byte("the word is here\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	at := binding(t, pure(t, fmt.Sprintf(`,"preopens":["/work::%s","/data::%s:ro"]`, one, two)))
	e := open(t, at)
	if root := e.Info().Root; root != "/work" {
		t.Errorf("the root is %s", root)
	}
	for _, tt := range []struct {
		name      string
		arguments args
		says      string
	}{
		{"read_file", args{"path": "first.txt"}, `"path":"first.txt"`},
		{"read_file", args{"path": "/work/first.txt"}, `"path":"first.txt"`},
		{"read_file", args{"path": "/data/second.txt"}, `"path":"/data/second.txt"`},
		{"read_file", args{"path": "/data/none"}, `there is no file "/data/none"`},
		{"list_files", args{}, `"first.txt"`},
		{"list_files", args{"path": "/data"}, `"/data/second.txt"`},
		{"grep", args{"pattern": "word"}, `"first.txt"`},
		{"grep", args{"pattern": "word", "path": "/data"}, `"/data/second.txt"`},
		{"glob", args{"pattern": "*.txt"}, `"first.txt"`},
		{"glob", args{"pattern": "/data/*.txt"}, `"/data/second.txt"`},
		{"write_file", args{"path": "/work/new/file", "content": "new"}, `"path":"new/file"`},
		{"edit_file", args{"path": "first.txt", "old_text": "word", "new_text": "text"}, `"path":"first.txt"`},
	} {
		if got, err := call(t, e, tt.name, tt.arguments); err != nil || !strings.Contains(got, tt.says) {
			t.Errorf("%s %v: %s (%v)", tt.name, tt.arguments, got, err)
		}
	}
	for _, tt := range []struct {
		name      string
		arguments args
		kind      tool.Kind
	}{
		{"write_file", args{"path": "/data/new", "content": "new"}, tool.Denied},
		{"edit_file", args{"path": "/data/second.txt", "old_text": "word", "new_text": "text"}, tool.Denied},
		{"read_file", args{"path": filepath.Join(one, "first.txt")}, tool.PathOutsideRoot},
		{"read_file", args{"path": "/data/../etc/passwd"}, tool.PathOutsideRoot},
		{"read_file", args{"path": "../x"}, tool.PathOutsideRoot},
		{"bash", args{"command": "true"}, tool.Unsupported},
		{"git", args{"subcommand": "status"}, tool.Unsupported},
		{"process", args{"action": "list"}, tool.Unsupported},
		{"nothing", args{}, tool.ToolNotFound},
	} {
		_, err := call(t, e, tt.name, tt.arguments)
		if got := failed(t, err); got.Kind != tt.kind || got.Hint == "" {
			t.Errorf("%s %v: %s: %v", tt.name, tt.arguments, got.Kind, got)
		}
	}
	if tools, err := e.Tools(t.Context()); err != nil || len(tools) != 7 {
		t.Errorf("%d tools: %v (%v)", len(tools), tools, err)
	}
	if data, err := e.ReadFile(t.Context(), "/data/second.txt", 4, 4); err != nil || string(data) != "word" {
		t.Errorf("%q (%v)", data, err)
	}
	if info, err := e.Stat(t.Context(), "/data"); err != nil || info.Path != "/data" || info.Type != "directory" {
		t.Errorf("%+v (%v)", info, err)
	}
	if all, err := e.ReadDirectory(t.Context(), "/data"); err != nil || len(all) != 1 || all[0].Path != "/data/second.txt" {
		t.Errorf("%+v (%v)", all, err)
	}
	if _, err := e.WriteFile(t.Context(), "/data/x", nil); tool.KindOf(err) != tool.Denied {
		t.Error(err)
	}
	if info, err := e.WriteFile(t.Context(), "/work/x", []byte("x")); err != nil || info.Path != "x" {
		t.Errorf("%+v (%v)", info, err)
	}
	present(t, e, "/data/second.txt", "the word is here\n")

	if err := os.RemoveAll(two); err != nil {
		t.Fatal(err)
	}
	if _, err := call(t, e, "read_file", args{"path": "/data/second.txt"}); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("a directory that is gone: %v", err)
	}
	if _, err := e.RunModule(t.Context(), written(t, handmade(1))); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("a guest of a directory that is gone: %v", err)
	}
	at.Provisioned = true
	if _, err := New(options(t)).Open(t.Context(), at, nil); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("open again: %v", err)
	}
	at.Provisioned = false
	if _, err := New(options(t)).Open(t.Context(), at, nil); tool.KindOf(err) != tool.BackendUnavailable {
		t.Errorf("open anew: %v", err)
	}
}

// present presents a file and fetches it.
func present(t testing.TB, e backends.Environment, path, want string) {
	t.Helper()
	text, err := call(t, e, "present_artifact", args{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	var presented struct {
		Export string `json:"execution_export"`
	}
	if err := json.Unmarshal([]byte(text), &presented); err != nil {
		t.Fatal(err)
	}
	content, err := e.Export(t.Context(), presented.Export)
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(content)
	if err := content.Close(); err != nil {
		t.Error(err)
	}
	if err != nil || string(got) != want {
		t.Errorf("%q (%v)", got, err)
	}
}

// TestNoDirectory is a profile that gives guests no files.
func TestNoDirectory(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	if tools, err := e.Tools(t.Context()); err != nil || len(tools) != 0 {
		t.Errorf("%v (%v)", tools, err)
	}
	for _, name := range []string{"read_file", "write_file", "grep", "present_artifact"} {
		_, err := call(t, e, name, args{"path": "x"})
		if got := failed(t, err); got.Kind != tool.Unsupported || !strings.Contains(got.Message, "gives guests no directory") {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := e.Stat(t.Context(), "."); tool.KindOf(err) != tool.Unsupported {
		t.Error(err)
	}
	processes := e.Processes()
	if _, err := processes.Start(t.Context(), tool.StartRequest{}); tool.KindOf(err) != tool.Unsupported {
		t.Error(err)
	}
	if all, err := processes.List(t.Context()); err != nil || len(all) != 0 {
		t.Error(all, err)
	}
	if _, err := processes.Get(t.Context(), "p-1"); tool.KindOf(err) != tool.ProcessNotFound {
		t.Error(err)
	}
}

// TestFolderLink is a directory below the opened folder that a link leads out of
// it, as whoever works there could make.
func TestFolderLink(t *testing.T) {
	folder, elsewhere := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.Symlink(elsewhere, filepath.Join(folder, "out")), os.Mkdir(filepath.Join(folder, "in"), 0o755),
		os.Symlink("in", filepath.Join(folder, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for sub, kind := range map[string]tool.Kind{"out": tool.PathOutsideRoot, "in": "", "link": ""} {
		p, err := pure(t, `,"preopens":["/work::${workspaceFolder}/`+sub+`"]`).InFolder(folder)
		if err != nil {
			t.Fatal(err)
		}
		at := binding(t, p)
		at.WorkspaceFolder = folder
		e, err := New(options(t)).Open(t.Context(), at, nil)
		if kind == "" && err != nil || kind != "" && tool.KindOf(err) != kind {
			t.Errorf("%s: %v", sub, err)
		}
		if err == nil {
			if err := e.Detach(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	at := binding(t, pure(t, preopen(dir, "")))
	e := open(t, at)
	if _, err := call(t, e, "write_file", args{"path": "kept", "content": "kept"}); err != nil {
		t.Fatal(err)
	}
	present(t, e, "kept", "kept")
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := New(options(t)).Remove(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(at.StateDir); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "kept")); err != nil {
		t.Error(err)
	}
}
