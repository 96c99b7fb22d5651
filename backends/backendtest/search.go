package backendtest

import (
	"fmt"
	"strings"

	"github.com/caisson-dev/caisson/backends/tool"
)

// page is what every paged tool answers beside its entries.
type page struct {
	Total    int  `json:"total"`
	Offset   int  `json:"offset"`
	Returned int  `json:"returned_count"`
	HasMore  bool `json:"has_more"`
}

func searchTests() []test {
	return []test{
		{name: "Search", run: testSearch},
		{name: "Pages", run: testPages},
	}
}

func testSearch(w *world) {
	for name, content := range map[string]string{
		"src/main.go":    "package main\n\nfunc Needle() {}\n// needle again\n",
		"src/util.go":    "package main\n\nvar hay = 1\n",
		"docs/readme.md": "a needle in the docs\n",
		".gitignore":     "ignored/\n",
		"ignored/x.go":   "needle\n",
		"bin/data":       "needle\x00\x01\x02",
	} {
		w.write(".probe", nil) // the root exists whatever the order
		w.call("write_file", args{"path": name, "content": content})
	}
	for _, tt := range []struct {
		label string
		tool  string
		args  args
		want  []string
		not   []string
	}{
		{"grep", "grep", args{"pattern": "needle"}, []string{"src/main.go", "docs/readme.md", "needle again"}, []string{"Needle()", "util.go", "ignored/x.go"}},
		{"grep ignoring case", "grep", args{"pattern": "needle", "ignore_case": true, "path": "src"}, []string{"func Needle()", "needle again"}, []string{"readme.md"}},
		{"grep in some files", "grep", args{"pattern": "needle", "include": "*.md"}, []string{"docs/readme.md"}, []string{"main.go"}},
		{"grep for files", "grep", args{"pattern": "needle", "output_mode": "files_with_matches"}, []string{"src/main.go", "docs/readme.md"}, []string{"needle again"}},
		{"grep for counts", "grep", args{"pattern": "e", "output_mode": "count", "include": "main.go"}, []string{"src/main.go"}, []string{"Needle"}},
		{"grep with context", "grep", args{"pattern": "Needle", "context": 1}, []string{"func Needle()", "needle again"}, []string{"package main"}},
		{"glob", "glob", args{"pattern": "**/*.go"}, []string{"src/main.go", "src/util.go"}, []string{"readme.md"}},
		{"glob in a folder", "glob", args{"pattern": "*.md", "path": "docs"}, []string{"docs/readme.md"}, []string{"main.go"}},
		{"list", "list_files", args{"path": "src"}, []string{"main.go", "util.go"}, []string{"readme.md"}},
	} {
		res := string(w.call(tt.tool, tt.args).StructuredContent)
		for _, want := range tt.want {
			if !strings.Contains(res, want) {
				w.Errorf("%s: no %q in %s", tt.label, want, res)
			}
		}
		for _, not := range tt.not {
			if strings.Contains(res, not) {
				w.Errorf("%s: %q in %s", tt.label, not, res)
			}
		}
	}
	for name, a := range map[string]args{"grep": {"pattern": "nothing like it"}, "glob": {"pattern": "*.nothing"}} {
		if p := into[page](w, name, a); p.Total != 0 || p.HasMore {
			w.Errorf("%s without matches: %+v", name, p)
		}
	}
	w.refused("grep", args{"pattern": "x", "path": "none"}, tool.InvalidParams)
}

// testPages reads long answers page by page and misses nothing.
func testPages(w *world) {
	const files = 700
	for i := range files {
		w.write(fmt.Sprintf("file-%04d", i), []byte("needle\n"))
	}
	for name, a := range map[string]args{
		"list_files": {},
		"glob":       {"pattern": "file-*"},
		"grep":       {"pattern": "needle"},
	} {
		seen := make(map[string]bool)
		for offset, pages := 0, 0; ; pages++ {
			a["offset"] = offset
			res := w.call(name, a)
			p := decode[page](w, res)
			for i := range files {
				if file := fmt.Sprintf("file-%04d", i); strings.Contains(string(res.StructuredContent), file) {
					seen[file] = true
				}
			}
			if p.Returned <= 0 || pages > files {
				w.Errorf("%s from %d: %+v", name, offset, p)
				break
			}
			offset += p.Returned
			if !p.HasMore {
				break
			}
		}
		if len(seen) != files {
			w.Errorf("%s showed %d of %d files", name, len(seen), files)
		}
	}
}
