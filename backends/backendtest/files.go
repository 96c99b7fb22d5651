package backendtest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// fileView is what read_file answers.
type fileView struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	SHA256     string `json:"content_sha256"`
	StartLine  int    `json:"start_line"`
	NumLines   int    `json:"num_lines"`
	TotalLines int    `json:"total_lines"`
	Truncated  bool   `json:"truncated"`
}

// change is what write_file and edit_file answer.
type change struct {
	Path    string `json:"path"`
	Written int64  `json:"written_bytes"`
	Old     string `json:"old_file_sha"`
	New     string `json:"new_file_sha"`
	Diff    string `json:"diff"`
}

func fileTests() []test {
	return []test{
		{name: "Describe", run: testDescribe},
		{name: "ReadWriteEdit", run: testReadWriteEdit},
		{name: "ReadRanges", run: testReadRanges},
		{name: "EditChangesOnlyWhatItNames", run: testEditBytes},
		{name: "ByteExactWrites", run: testByteExactWrites},
		{name: "BadCallsAreRefused", run: testBadCalls},
		{name: "FileSystem", run: testFileSystem},
	}
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func testDescribe(w *world) {
	info := w.env.Info()
	if info.Backend != w.backend.Kind() || info.Environment != w.binding.Environment || !strings.HasPrefix(info.Root, "/") {
		w.Errorf("info %+v of environment %s", info, w.binding.Environment)
	}
	described, err := w.env.Tools(w.Context())
	if err != nil {
		w.Fatal(describe(err))
	}
	groups := make(map[string]tool.Group)
	for _, d := range described {
		groups[d.Name] = d.Group
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(d.InputSchema, &schema); err != nil || schema.Type != "object" || d.Description == "" {
			w.Errorf("%s: schema %s, description %q, %v", d.Name, d.InputSchema, d.Description, err)
		}
	}
	for name, group := range map[string]tool.Group{
		"read_file": tool.GroupFile, "write_file": tool.GroupFile, "edit_file": tool.GroupFile, "list_files": tool.GroupFile,
		"grep": tool.GroupSearch, "glob": tool.GroupSearch, "bash": tool.GroupShell, "git": tool.GroupGit,
		"process": tool.GroupProcess, "present_artifact": tool.GroupArtifact,
	} {
		if w.h.Lacks.Commands != "" && needsCommands(name) {
			group = ""
		}
		if groups[name] != group {
			w.Errorf("%s is in group %q, want %q", name, groups[name], group)
		}
	}
}

// needsCommands reports whether a tool is about programs of the environment.
func needsCommands(name string) bool { return name == "bash" || name == "git" || name == "process" }

func testReadWriteEdit(w *world) {
	written := into[change](w, "write_file", args{"path": "dir/sub/a.txt", "content": "one\ntwo\nthree\n"})
	if written.Written != 14 || written.New != sum([]byte("one\ntwo\nthree\n")) || written.Old != "" {
		w.Errorf("write_file: %+v", written)
	}
	for _, path := range []string{"dir/sub/a.txt", "./dir//sub/../sub/a.txt", w.abs("dir/sub/a.txt")} {
		view := into[fileView](w, "read_file", args{"path": path})
		if view.Content != "one\ntwo\nthree\n" || view.SHA256 != written.New || view.TotalLines != 3 || view.Truncated {
			w.Errorf("read_file %s: %+v", path, view)
		}
	}
	edited := into[change](w, "edit_file", args{"path": "dir/sub/a.txt", "old_text": "two", "new_text": "2"})
	if edited.Old != written.New || edited.New != sum([]byte("one\n2\nthree\n")) || !strings.Contains(edited.Diff, "-two") || !strings.Contains(edited.Diff, "+2") {
		w.Errorf("edit_file: %+v", edited)
	}
	w.refused("edit_file", args{"path": "dir/sub/a.txt", "old_text": "four", "new_text": "4"}, tool.InvalidParams)
	w.refused("edit_file", args{"path": "dir/sub/a.txt", "old_text": "e", "new_text": "E"}, tool.InvalidParams)
	w.call("edit_file", args{"path": "dir/sub/a.txt", "old_text": "e", "new_text": "E", "replace_all": true})
	w.holds("dir/sub/a.txt", []byte("onE\n2\nthrEE\n"))

	w.refused("write_file", args{"path": "dir/sub/a.txt", "content": "x", "create_only": true}, tool.InvalidParams, tool.Denied)
	w.holds("dir/sub/a.txt", []byte("onE\n2\nthrEE\n"))
	w.call("write_file", args{"path": "new", "content": "", "create_only": true})
	w.holds("new", nil)

	raw := make([]byte, 1000)
	rand.Read(raw) // never fails, as documented
	w.call("write_file", args{"path": "raw", "content": base64.StdEncoding.EncodeToString(raw), "encoding": "base64"})
	w.holds("raw", raw)
	back := into[fileView](w, "read_file", args{"path": "raw", "encoding": "base64"})
	if back.Content != base64.StdEncoding.EncodeToString(raw) {
		w.Errorf("read_file in base64 gives %d characters", len(back.Content))
	}
}

func testReadRanges(w *world) {
	var b strings.Builder
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	w.write("lines", []byte(b.String()))
	view := into[fileView](w, "read_file", args{"path": "lines", "offset": 50, "limit": 2})
	if view.Content != "line 50\nline 51\n" || view.StartLine != 50 || view.NumLines != 2 || view.TotalLines != 100 {
		w.Errorf("two lines from 50: %+v", view)
	}
	part := into[fileView](w, "read_file", args{"path": "lines", "encoding": "base64", "byte_offset": 7, "byte_limit": 6})
	if got, err := base64.StdEncoding.DecodeString(part.Content); err != nil || string(got) != "line 2" {
		w.Errorf("six bytes from 7: %q, %v", got, err)
	}
	w.refused("read_file", args{"path": "none"}, tool.InvalidParams)
	w.refused("read_file", args{"path": ""}, tool.InvalidParams)
}

func testEditBytes(w *world) {
	for i, tt := range []struct{ before, old, new, after string }{
		{"a\r\nb\r\nc", "b", "B", "a\r\nB\r\nc"},
		{"a\r\nb\nc\rd", "c", "C", "a\r\nb\nC\rd"},
		{"\xef\xbb\xbfa\nb\n", "a", "A", "\xef\xbb\xbfA\nb\n"},
		{"no newline", "no", "still no", "still no newline"},
	} {
		name := fmt.Sprintf("edit-%d", i)
		w.write(name, []byte(tt.before))
		w.call("edit_file", args{"path": name, "old_text": tt.old, "new_text": tt.new})
		w.holds(name, []byte(tt.after))
	}
}

// contents are texts of about the size that are hard on the way.
func contents(size int) map[string][]byte {
	raw := make([]byte, size/4*3)
	rand.Read(raw) // never fails, as documented
	hard := []byte("\"quoted\" 'once' \\n is no newline \\ \n\t\r\n$HOME `id` %s ü✓🍣 \u2028</script>\x7f\n")
	return map[string][]byte{
		"quotes": bytes.Repeat(hard, size/len(hard)+1)[:size/len(hard)*len(hard)],
		"base64": []byte(base64.StdEncoding.EncodeToString(raw)),
	}
}

func testByteExactWrites(w *world) {
	for _, size := range []int{70_000, 1 << 20, 15 << 20} {
		for kind, content := range contents(size) {
			name := fmt.Sprintf("%s-%d", kind, size)
			written := into[change](w, "write_file", args{"path": name, "content": string(content)})
			if written.Written != int64(len(content)) || written.New != sum(content) {
				w.Errorf("%s: %d bytes written, digest %s", name, written.Written, written.New)
			}
			w.holds(name, content)
		}
	}
	large := strings.Repeat("x", backends.MaxFileRead)
	w.call("write_file", args{"path": "largest", "content": large})
	w.refused("write_file", args{"path": "too-large", "content": large + "x"}, tool.InvalidParams)
	if w.exists("too-large") {
		w.Error("a refused content was written")
	}
	if _, err := w.fs.WriteFile(w.Context(), "too-large", []byte(large+"x")); err == nil {
		w.Error("WriteFile took more than its limit")
	}
	w.call("write_file", args{"path": "afterwards", "content": "the session goes on"})
	w.holds("afterwards", []byte("the session goes on"))
}

func testBadCalls(w *world) {
	if _, err := w.try("no_such_tool", args{}); tool.KindOf(err) != tool.ToolNotFound {
		w.Errorf("an unknown tool: %v", describe(err))
	}
	for name, raw := range map[string]string{
		"read_file":        `{}`,
		"write_file":       `{"path":"x"}`,
		"edit_file":        `{"path":"x","old_text":"","new_text":"y"}`,
		"grep":             `{"pattern":"("}`,
		"glob":             `{"pattern":"[" }`,
		"process":          `{"action":"dance"}`,
		"present_artifact": `[]`,
		"bash":             `{"command":17}`,
	} {
		if w.h.Lacks.Commands != "" && needsCommands(name) {
			w.refused(name, json.RawMessage(raw), tool.Unsupported)
			continue
		}
		w.refused(name, json.RawMessage(raw), tool.InvalidParams)
	}
	for _, raw := range []string{`{"path":`, `null`, `"x"`} {
		// What is no JSON at all cannot even be passed on.
		if res, err := w.request(w.Context(), tool.Request{Name: "read_file"}, jsonish(raw)); err == nil && !res.IsError {
			w.Errorf("arguments %s were taken", raw)
		}
	}
	w.call("list_files", args{})
}

// jsonish passes text off as JSON without checking it.
func jsonish(text string) json.RawMessage { return json.RawMessage(text) }

func testFileSystem(w *world) {
	ctx := w.Context()
	info, err := w.fs.WriteFile(ctx, "f", []byte("0123456789"))
	if err != nil || info.Size != 10 || info.Type != "file" {
		w.Errorf("WriteFile: %+v, %v", info, err)
	}
	w.call("write_file", args{"path": "d/inner", "content": "x"})
	for _, tt := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "0123456789"}, {3, 4, "3456"}, {8, 100, "89"}, {10, 5, ""}, {99, -1, ""}} {
		if got, err := w.fs.ReadFile(ctx, "f", tt.offset, tt.length); err != nil || string(got) != tt.want {
			w.Errorf("ReadFile(%d, %d) = %q, %v", tt.offset, tt.length, got, err)
		}
	}
	if info, err := w.fs.Stat(ctx, "f"); err != nil || info.Name != "f" || info.Size != 10 || info.ModTime.IsZero() {
		w.Errorf("Stat f: %+v, %v", info, err)
	}
	if info, err := w.fs.Stat(ctx, ""); err != nil || info.Type != "directory" {
		w.Errorf("Stat of the root: %+v, %v", info, err)
	}
	entries, err := w.fs.ReadDirectory(ctx, "")
	if err != nil {
		w.Fatal(describe(err))
	}
	found := make(map[string]string)
	for _, e := range entries {
		found[e.Name] = e.Type
	}
	if found["f"] != "file" || found["d"] != "directory" {
		w.Errorf("ReadDirectory: %v", found)
	}
	for what, err := range map[string]error{
		"stat of nothing":   ignore(w.fs.Stat(ctx, "none")),
		"read of nothing":   ignore(w.fs.ReadFile(ctx, "none", 0, -1)),
		"read of a folder":  ignore(w.fs.ReadFile(ctx, "d", 0, -1)),
		"list of nothing":   ignore(w.fs.ReadDirectory(ctx, "none")),
		"list of a file":    ignore(w.fs.ReadDirectory(ctx, "f")),
		"write of a folder": ignore(w.fs.WriteFile(ctx, "d", []byte("x"))),
	} {
		if err == nil {
			w.Errorf("%s worked", what)
		}
	}
}

func ignore[T any](_ T, err error) error { return err }
