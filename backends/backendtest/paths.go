package backendtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func pathTests() []test {
	return []test{
		{name: "PathsOutsideTheRoot", run: testPathsOutside},
		{name: "LinksOutsideTheRoot", needs: needShell, run: testLinksOutside},
		{name: "LinksInsideTheRoot", needs: needShell, run: testLinksInside},
		{name: "NamesOfAnyBytes", run: testNames},
	}
}

// outside asks every tool for the path, which must be refused, and checks that
// people are refused too.
func (w *world) outside(path string) {
	w.Helper()
	for name, a := range map[string]args{
		"read_file":        {"path": path},
		"write_file":       {"path": path, "content": "x"},
		"edit_file":        {"path": path, "old_text": "r", "new_text": "x"},
		"list_files":       {"path": path},
		"grep":             {"pattern": "r", "path": path},
		"glob":             {"pattern": "*", "path": path},
		"present_artifact": {"path": path},
	} {
		w.refused(name, a, tool.PathOutsideRoot, tool.InvalidParams)
	}
	ctx := w.Context()
	for what, err := range map[string]error{
		"ReadFile":      ignore(w.fs.ReadFile(ctx, path, 0, -1)),
		"WriteFile":     ignore(w.fs.WriteFile(ctx, path, []byte("x"))),
		"ReadDirectory": ignore(w.fs.ReadDirectory(ctx, path)),
	} {
		if err == nil {
			w.Errorf("%s of %s was not refused", what, path)
		}
	}
}

func testPathsOutside(w *world) {
	for _, path := range []string{
		"..", "../x", "../../../../etc/passwd", "a/../../x", "/", "/etc/passwd", "/proc/self/environ",
		w.env.Info().Root + "/../x", w.env.Info().Root + "x", "bytes:..%2F..%2Fetc%2Fpasswd", "bytes:%2Fetc%2Fpasswd",
	} {
		w.outside(path)
	}
	for name, a := range map[string]args{
		"bash": {"command": "true", "cwd": "/etc"},
		"read": {"path": "a\x00b"},
	} {
		if name == "read" {
			name = "read_file"
		} else if w.h.Lacks.Shell != "" {
			continue // answered before the directory is looked at
		}
		w.refused(name, a, tool.PathOutsideRoot, tool.InvalidParams)
	}
}

func testLinksOutside(w *world) {
	w.sh("mkdir in && ln -s /etc etc && ln -s / in/root && ln -s ../.. up && ln -s /etc/passwd passwd && " +
		"ln -s loop loop && ln -s /nonexistent/caisson dangling && ln -s ../nonexistent-caisson dangling2 && ln -s etc chain")
	for _, path := range []string{
		"passwd", "etc/passwd", "in/root/etc/passwd", "up/x", "chain/passwd", "loop", "loop/x", "dangling", "dangling2", "in/../etc/passwd",
	} {
		w.outside(path)
	}
	if out := w.sh("ls -a ..; readlink passwd dangling"); !strings.HasSuffix(out, "/etc/passwd\n/nonexistent/caisson\n") || strings.Contains(out, "nonexistent-caisson\n/etc") {
		w.Errorf("a link was written through: %s", out)
	}
	// A search must not wander out either.
	for _, res := range []tool.Result{
		w.call("grep", args{"pattern": "root:", "output_mode": "files_with_matches"}),
		w.call("glob", args{"pattern": "**/passwd"}),
	} {
		if strings.Contains(string(res.StructuredContent), "etc/passwd") {
			w.Errorf("a search left the root: %s", brief(res.StructuredContent))
		}
	}
}

func testLinksInside(w *world) {
	w.write("target", []byte("content"))
	w.sh("mkdir -p d/e && ln -s ../target d/relative && ln -s " + w.abs("target") + " d/absolute && ln -s d dir && ln -s ../../target d/e/up")
	for _, path := range []string{"d/relative", "d/absolute", "dir/relative", "d/e/up", "dir/e/../relative"} {
		if view := into[fileView](w, "read_file", args{"path": path}); view.Content != "content" {
			w.Errorf("%s: %+v", path, view)
		}
	}
}

// listing is what list_files answers.
type listing struct {
	Entries []struct {
		Name  string `json:"name"`
		Path  string `json:"path"`
		IsDir bool   `json:"is_dir"`
		Size  int64  `json:"size"`
	} `json:"entries"`
	Total   int  `json:"total"`
	HasMore bool `json:"has_more"`
}

// Names are written in the tools' notation, which for these is percent-encoding
// of the bytes; each is listed, read, searched and written by the path that the
// list gave.
func testNames(w *world) {
	names := []string{"bytes:a%FFb", "bytes:%80", "new\nline", "tab\tand space ", "quote\"'`$x", "ünïcode-✓", "-rf", "*", "bytes:bytes%3Aliteral"}
	for i, name := range names {
		w.call("write_file", args{"path": name, "content": fmt.Sprintf("needle %d", i)})
	}
	list := into[listing](w, "list_files", args{})
	var listed []string
	for _, e := range list.Entries {
		listed = append(listed, e.Path)
	}
	for i, name := range names {
		if !slices.Contains(listed, name) {
			w.Errorf("%q is not in the list %q", name, listed)
			continue
		}
		want := fmt.Sprintf("needle %d", i)
		if view := into[fileView](w, "read_file", args{"path": name}); view.Content != want || view.Path != name {
			w.Errorf("read_file %q: %+v", name, view)
		}
		w.call("edit_file", args{"path": name, "old_text": "needle", "new_text": "found"})
		w.holds(name, []byte(fmt.Sprintf("found %d", i)))
	}
	entries, err := w.fs.ReadDirectory(w.Context(), "")
	if err != nil {
		w.Fatal(describe(err))
	}
	var shown []string
	for _, e := range entries {
		shown = append(shown, e.Path)
	}
	for _, name := range names {
		if !slices.Contains(shown, name) {
			w.Errorf("%q is not shown to people: %q", name, shown)
		}
	}
	if w.h.Lacks.Shell == "" {
		// The names are what they stand for.
		if out := w.sh(`cat "$(printf 'a\377b')" "$(printf '\200')" "$(printf 'new\nline')" bytes:literal ./-rf`); strings.Count(out, "found") != 5 {
			w.Errorf("the shell reads %q", out)
		}
		w.worksIn("bytes:d%FF", "found")
	}
}

// worksIn makes the directory of the name, in the tools' notation, and runs something
// there in each way that a directory can be named.
func (w *world) worksIn(name, said string) {
	w.Helper()
	w.call("write_file", args{"path": name + "/f", "content": said})
	if r := into[ran](w, "bash", args{"command": "cat f", "cwd": name}); r.Stdout != said {
		w.Errorf("bash in %q: %+v", name, r)
	}
	p := w.start(tool.StartRequest{Argv: []string{"cat", "f"}, CWD: name})
	w.ended(p.ID)
	if r := w.readAt(p.ID, 0); string(r.Output) != said || p.CWD != "bytes:"+w.abs(name[len("bytes:"):]) {
		w.Errorf("a process in %q is in %q and prints %q", name, p.CWD, r.Output)
	}
	if w.h.Lacks.Jobs == "" {
		r := backends.JobRequest{Argv: []string{"cat", "f"}, CWD: name}
		if got := w.job(r); string(got.Stdout) != said {
			w.Errorf("a job in %q: %+v", name, got)
		}
	}
}
