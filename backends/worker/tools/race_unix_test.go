//go:build unix

package tools

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// TestSwappedLinks: while somebody swaps a directory, and a file, with links to
// the outside and back, no tool shows what is outside or changes it.
func TestSwappedLinks(t *testing.T) {
	const secret = "SECRET inside\n"
	outside := t.TempDir()
	for _, name := range []string{"file", "other"} {
		if err := os.WriteFile(filepath.Join(outside, name), []byte(secret), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b := newBench(t, map[string]string{"real/file": "inside\n", "real/other": "inside\n"})
	at := func(name string) string { return filepath.Join(b.dir, name) }
	swap := func(name string, targets ...string) func(int) {
		return func(i int) {
			// A link is replaced in one step; a file or directory that a tool has made is removed.
			other := at(".swap-" + name)
			os.Remove(other)
			os.Symlink(targets[i%len(targets)], other)
			if os.Rename(other, at(name)) != nil {
				os.RemoveAll(at(name))
			}
		}
	}
	stop := make(chan struct{})
	var swappers sync.WaitGroup
	for _, f := range []func(int){
		swap("dir", "real", outside, at("real")),
		swap("leaf", "real/other", filepath.Join(outside, "other"), filepath.Join(outside, "new")),
	} {
		swappers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					f(i)
				}
			}
		})
	}
	calls := []tool.Request{
		request(t, "read_file", args{"path": "dir/file"}),
		request(t, "read_file", args{"path": "leaf"}),
		request(t, "read_file", args{"path": "dir/file", "encoding": "base64"}),
		request(t, "edit_file", args{"path": "dir/file", "old_text": "inside", "new_text": "insidE"}),
		request(t, "edit_file", args{"path": "leaf", "old_text": "inside", "new_text": "insidE"}),
		request(t, "write_file", args{"path": "dir/file", "content": "inside\n"}),
		request(t, "write_file", args{"path": "leaf", "content": "inside\n"}),
		request(t, "write_file", args{"path": "dir/new", "content": "inside\n", "create_only": true}),
		request(t, "write_file", args{"path": "dir/deep/er/new", "content": "inside\n"}),
		request(t, "list_files", args{"path": "dir"}),
		request(t, "grep", args{"path": "dir", "pattern": "SECRET"}),
		request(t, "grep", args{"path": "leaf", "pattern": "SECRET"}),
		request(t, "glob", args{"path": "dir", "pattern": "**"}),
		request(t, "present_artifact", args{"path": "dir/file"}),
	}
	done, refused := 0, 0
	for done < 300 || refused < 300 {
		for _, r := range calls {
			res, err := b.Call(t.Context(), r)
			switch {
			case tool.KindOf(err) == tool.PathOutsideRoot:
				refused++
			case err != nil:
				t.Fatalf("%s %s: %v", r.Name, r.Arguments, err)
			case strings.Contains(string(res.StructuredContent), "SECRET"), strings.Contains(string(res.StructuredContent), "U0VDUkVU"): // in base64
				t.Fatalf("%s %s shows the outside: %s", r.Name, r.Arguments, res.StructuredContent)
			case !res.IsError:
				done++
				b.presentedInside(res)
			}
		}
		for _, name := range []string{"real/file", "real/other"} { // for the next edit
			if err := os.WriteFile(at(name), []byte("inside\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(at("real/new"))
	}
	close(stop)
	swappers.Wait()
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Errorf("outside are %v, %v", entries, err)
	}
	for _, name := range []string{"file", "other"} {
		if got, err := os.ReadFile(filepath.Join(outside, name)); err != nil || string(got) != secret {
			t.Errorf("the outside holds %q, %v", got, err)
		}
	}
}

// presentedInside fails when the result is a snapshot of what is outside.
func (b *bench) presentedInside(r tool.Result) {
	b.t.Helper()
	var p presented
	if len(r.Content) == 0 || json.Unmarshal([]byte(r.Content[0].Text), &p) != nil || p.Export == "" {
		return
	}
	f, _, err := b.o.Exports.Open(p.Export)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	content, err := io.ReadAll(f)
	if err != nil || strings.Contains(string(content), "SECRET") {
		b.t.Fatalf("the outside was presented: %q, %v", content, err)
	}
	if err := b.o.Exports.Release(p.Export); err != nil {
		b.t.Fatal(err)
	}
}
