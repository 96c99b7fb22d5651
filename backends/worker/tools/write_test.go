package tools

import (
	"crypto/rand"
	"encoding/base64"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestWriteFile(t *testing.T) {
	b := newBench(t, nil)
	got := b.call("write_file", args{"path": "a/b", "content": "one\ntwo\n"})
	want(t, got, args{"path": "a/b", "written_bytes": 8, "new_file_sha": sum("one\ntwo\n"), "old_file_sha": nil, "created": true, "diff": "--- a/a/b\n+++ b/a/b\n@@ -0,0 +1,2 @@\n+one\n+two\n"})
	got = b.call("write_file", args{"path": "a/b", "content": "one\n2\n"})
	want(t, got, args{"old_file_sha": sum("one\ntwo\n"), "new_file_sha": sum("one\n2\n"), "created": nil, "diff": "--- a/a/b\n+++ b/a/b\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"})
	want(t, b.call("write_file", args{"path": "a/b", "content": "one\n2\n"}), args{"diff": ""})
	want(t, b.call("write_file", args{"path": "empty", "content": ""}), args{"written_bytes": 0})
	b.refused("exists already", "write_file", args{"path": "a/b", "content": "", "create_only": true})
	b.refused("is a directory", "write_file", args{"path": "a", "content": ""})
	b.refused("not a directory", "write_file", args{"path": "empty/x", "content": ""})
	b.refused("not base64", "write_file", args{"path": "x", "content": "%", "encoding": "base64"})
	b.refused("encoding", "write_file", args{"path": "x", "content": "", "encoding": "hex"})
	b.call("write_file", args{"path": "fresh", "content": "x", "create_only": true})
	if b.get("a/b") != "one\n2\n" || b.get("fresh") != "x" {
		t.Error("the files hold something else")
	}
}

func TestWriteFileOfAnySize(t *testing.T) {
	b := newBench(t, nil)
	random := make([]byte, 15<<20)
	rand.Read(random)
	quoted := strings.Repeat("\"\\\n\t\u0001é😀", 3<<19)
	for _, content := range []string{strings.Repeat("x", 70_000), quoted[:1<<20], quoted[:15<<20-3], strings.Repeat("y", tool.MaxFileBytes)} {
		content = strings.ToValidUTF8(content, "")
		b.call("write_file", args{"path": "text", "content": content})
		if b.get("text") != content {
			t.Errorf("%d bytes arrived changed", len(content))
		}
	}
	got := b.call("write_file", args{"path": "bin", "content": base64.StdEncoding.EncodeToString(random), "encoding": "base64"})
	want(t, got, args{"diff": "", "new_file_sha": sum(string(random))})
	if b.get("bin") != string(random) {
		t.Error("base64 arrived changed")
	}
	for _, a := range []args{
		{"path": "text", "content": strings.Repeat("z", tool.MaxFileBytes+1)},
		{"path": "text", "content": base64.StdEncoding.EncodeToString(make([]byte, tool.MaxFileBytes+1)), "encoding": "base64"},
	} {
		b.refused("16 MiB", "write_file", a)
	}
	if !strings.HasPrefix(b.get("text"), "yyy") {
		t.Error("a refused write changed the file")
	}
}

// TestNames: a file can be read, written and searched by the name that a
// listing gave.
func TestNames(t *testing.T) {
	names := map[string]string{
		"plain": "plain", "two\nlines": "two\nlines", "\xff\xfe": "bytes:%FF%FE", "bytes:x": "bytes:bytes%3Ax", "d\xff/f": "bytes:d%FF/f", "é": "é", " ": " ", "%41": "%41",
	}
	files := map[string]string{}
	for name := range names {
		files[name] = "old"
	}
	b := newBench(t, files)
	listed := map[string]bool{}
	for _, e := range b.call("list_files", nil)["entries"].([]any) {
		listed[e.(map[string]any)["path"].(string)] = true
	}
	found := map[string]bool{}
	for _, p := range b.call("glob", args{"pattern": "**"})["files"].([]any) {
		found[p.(string)] = true
	}
	for name, written := range names {
		if dir := filepath.Dir(name); dir == "." && !listed[written] || !found[written] {
			t.Errorf("%q is not listed as %q: %v, %v", name, written, listed, found)
		}
		want(t, b.call("read_file", args{"path": written}), args{"content": "old", "path": written})
		want(t, b.call("write_file", args{"path": written, "content": "new"}), args{"path": written})
		want(t, b.call("edit_file", args{"path": written, "old_text": "new", "new_text": "newer"}), args{"path": written})
		if b.get(name) != "newer" {
			t.Errorf("%q holds %q", name, b.get(name))
		}
		want(t, b.call("grep", args{"path": written, "pattern": "newer"}), args{"matches": []args{{"path": written, "line": 1, "text": "newer"}}})
		info, err := b.Stat(t.Context(), written)
		if err != nil || info.Path != written {
			t.Errorf("Stat(%q): %+v, %v", written, info, err)
		}
	}
}

func TestUnified(t *testing.T) {
	old := numbered(20000)
	got, cut := unified("f", []byte(old), []byte(strings.Replace(old, "line 9999\n", "changed\nlines\n", 1)))
	if want := "--- a/f\n+++ b/f\n@@ -9996,7 +9996,8 @@\n line 9996\n line 9997\n line 9998\n-line 9999\n+changed\n+lines\n line 10000\n line 10001\n line 10002\n"; got != want || cut {
		t.Errorf("it is\n%s", got)
	}
	got, _ = unified("f", []byte("a\nb"), []byte("a\nb\n"))
	if want := "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n"; got != want {
		t.Errorf("it is\n%s", got)
	}
	got, _ = unified("f", []byte("x\n"+old), []byte(old+"y\n"))
	if !strings.Contains(got, "@@ -1,4 +1,3 @@\n-x\n line 1\n") || !strings.Contains(got, "@@ -19999,3 +19998,4 @@\n line 19998\n line 19999\n line 20000\n+y\n") {
		t.Errorf("it is\n%s", got)
	}
	got, cut = unified("f", nil, []byte(old))
	if !cut || len(got) > maxDiff || !strings.HasSuffix(got, "\n") {
		t.Errorf("%d bytes, cut %v", len(got), cut)
	}
}

func TestFileSystem(t *testing.T) {
	b := newBench(t, map[string]string{"dir/file": "content", "exec": ""})
	ctx := t.Context()
	if err := os.Chmod(filepath.Join(b.dir, "exec"), 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nothing", filepath.Join(b.dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("dir", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	list, err := b.ReadDirectory(ctx, "")
	if err != nil || len(list) != 4 || list[0].Name != "dangling" || list[0].Type != "symlink" || list[1].Type != "directory" || list[2].Mode != "4755" || list[3].Type != "symlink" {
		t.Errorf("list %+v, %v", list, err)
	}
	if info, err := b.Stat(ctx, "link"); err != nil || info.Type != "directory" || info.Path != "link" {
		t.Errorf("stat of a link %+v, %v", info, err)
	}
	if info, err := b.Stat(ctx, "dangling"); err != nil || info.Type != "symlink" {
		t.Errorf("stat of a dangling link %+v, %v", info, err)
	}
	for _, row := range []struct {
		offset, length int64
		want           string
	}{{0, -1, "content"}, {3, -1, "tent"}, {3, 2, "te"}, {6, 100, "t"}, {7, 1, ""}, {100, -1, ""}, {0, 0, ""}} {
		if got, err := b.ReadFile(ctx, "dir/file", row.offset, row.length); err != nil || string(got) != row.want {
			t.Errorf("ReadFile %d %d: %q, %v", row.offset, row.length, got, err)
		}
	}
	if info, err := b.WriteFile(ctx, "new/file", []byte("abc")); err != nil || info.Size != 3 || info.Path != "new/file" || info.Name != "file" {
		t.Errorf("WriteFile: %+v, %v", info, err)
	}
	if err := os.Symlink("circle", filepath.Join(b.dir, "circle")); err != nil {
		t.Fatal(err)
	}
	for kind, f := range map[string]func() error{
		"missing":   func() error { _, err := b.Stat(ctx, "nothing"); return err },
		"no dir":    func() error { _, err := b.ReadDirectory(ctx, "exec"); return err },
		"a dir":     func() error { _, err := b.ReadFile(ctx, "dir", 0, 1); return err },
		"negative":  func() error { _, err := b.ReadFile(ctx, "exec", -1, 1); return err },
		"onto dir":  func() error { _, err := b.WriteFile(ctx, ".", nil); return err },
		"circle":    func() error { _, err := b.ReadFile(ctx, "circle", 0, 1); return err },
		"long name": func() error { _, err := b.WriteFile(ctx, strings.Repeat("x", 300), nil); return err },
		"too large": func() error { _, err := b.WriteFile(ctx, "x", make([]byte, tool.MaxFileBytes+1)); return err },
	} {
		if err := f(); tool.KindOf(err) != tool.InvalidParams {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := b.Stat(ctx, "../x"); tool.KindOf(err) != tool.PathOutsideRoot {
		t.Errorf("outside: %v", err)
	}
	if err := os.Truncate(filepath.Join(b.dir, "exec"), tool.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ReadFile(ctx, "exec", 0, -1); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a large file at once: %v", err)
	}
	if got, err := b.ReadFile(ctx, "exec", 0, 1<<40); err != nil || len(got) != tool.MaxFileBytes {
		t.Errorf("a large file in pieces: %d, %v", len(got), err)
	}
}

func TestListFiles(t *testing.T) {
	b := newBench(t, map[string]string{".gitignore": "x", "b": "12", "dir/c": ""})
	if err := os.Symlink("b", filepath.Join(b.dir, "a")); err != nil {
		t.Fatal(err)
	}
	got := b.call("list_files", nil)
	want(t, got, args{"total": 4, "offset": 0, "returned_count": 4, "has_more": false, "path": "."})
	entries := got["entries"].([]any)
	for i, e := range []args{
		{"name": ".gitignore", "is_dir": false, "size": 1, "mode": "0644"}, {"name": "a", "type": "symlink", "target": "b"}, {"name": "b", "size": 2}, {"name": "dir", "path": "dir", "is_dir": true, "mode": "0755"},
	} {
		want(t, entries[i].(map[string]any), e)
	}
	want(t, b.call("list_files", args{"offset": 3}), args{"total": 4, "offset": 3, "returned_count": 1, "has_more": false})
	want(t, b.call("list_files", args{"offset": 9}), args{"entries": []int{}, "returned_count": 0, "has_more": false})
	want(t, b.call("list_files", args{"path": "dir"})["entries"].([]any)[0].(map[string]any), args{"name": "c", "path": "dir/c"})
	b.refused("is a file", "list_files", args{"path": "b"})
	b.refused("there is no file", "list_files", args{"path": "nothing"})
}
