package tools

import (
	"fmt"
	"strings"
	"testing"
)

func TestGrep(t *testing.T) {
	b := newBench(t, map[string]string{"a.go": "one\ntwo\nthree\n", "b.txt": "Two\n", "skip/c.go": "two\n", ".gitignore": "skip/\n"})
	want(t, b.call("grep", args{"pattern": "two"}), args{
		"output_mode": "content", "total": 1, "offset": 0, "returned_count": 1, "has_more": false, "matches": []args{{"path": "a.go", "line": 2, "text": "two"}},
	})
	want(t, b.call("grep", args{"pattern": "two", "ignore_case": true, "output_mode": "files_with_matches"}), args{"total": 2, "files": []string{"a.go", "b.txt"}})
	want(t, b.call("grep", args{"pattern": "o", "output_mode": "count", "include": "*.go"}), args{"total": 1, "total_matches": 2, "counts": []args{{"path": "a.go", "count": 2}}})
	want(t, b.call("grep", args{"pattern": "two", "path": "skip"}), args{"matches": []args{{"path": "skip/c.go", "line": 1, "text": "two"}}})
	want(t, b.call("grep", args{"pattern": "two", "context": 1, "before": 0}), args{"returned_count": 1, "matches": []args{
		{"path": "a.go", "line": 2, "text": "two"}, {"path": "a.go", "line": 3, "text": "three", "context": true}}})
	want(t, b.call("grep", args{"pattern": "nothing"}), args{"total": 0, "returned_count": 0, "has_more": false})
	want(t, b.call("grep", args{"pattern": "", "include": []string{"*.txt", "!b*"}}), args{"total": 0})
	b.refused("RE2", "grep", args{"pattern": "(?=x)"})
	b.refused("output_mode", "grep", args{"pattern": "x", "output_mode": "lines"})
	b.refused("include", "grep", args{"pattern": "x", "include": "[a"})
	b.refused("include must be", "grep", args{"pattern": "x", "include": 1})
	b.refused("context is 101", "grep", args{"pattern": "x", "context": 101})
	b.refused("there is no file", "grep", args{"pattern": "x", "path": "nothing"})
}

func TestGrepPages(t *testing.T) {
	b := newBench(t, map[string]string{"f": numbered(1000)})
	seen := 0
	for {
		page := b.call("grep", args{"pattern": "line", "offset": seen})
		want(t, page, args{"total": 1000, "offset": seen})
		for _, m := range page["matches"].([]any) {
			seen++
			want(t, m.(map[string]any), args{"line": seen, "text": fmt.Sprintf("line %d", seen)})
		}
		if page["has_more"] == false {
			break
		}
	}
	if seen != 1000 {
		t.Errorf("%d lines", seen)
	}
	want(t, b.call("grep", args{"pattern": "line", "offset": 5000}), args{"total": 1000, "returned_count": 0, "has_more": false})
}

func TestGlob(t *testing.T) {
	files := map[string]string{"src/a.go": "", "src/deep/b.go": "", ".gitignore": "node_modules\n", "node_modules/m/i.js": "", "plain": ""}
	for i := range pagePaths + 5 {
		files[fmt.Sprintf("many/%04d", i)] = ""
	}
	b := newBench(t, files)
	for _, row := range []struct{ pattern, path, want string }{
		{"**/*.go", "", "src/a.go src/deep/b.go"},
		{"*.go", "src", "src/a.go"},
		{"src/*.go", "", "src/a.go"},
		{b.dir + "/src/*.go", "", "src/a.go"},
		{b.dir + "/src/*.go", "many", "src/a.go"},
		{"**/*.js", "", ""},
		{"node_modules/**/*.js", "", "node_modules/m/i.js"},
		{"plain", "", "plain"},
		{"../src/*.go", "many", "src/a.go"},
	} {
		want(t, b.call("glob", args{"pattern": row.pattern, "path": row.path}), args{"files": append([]string{}, strings.Fields(row.want)...), "has_more": false})
	}
	want(t, b.call("glob", args{"pattern": "many/*"}), args{"total": pagePaths + 5, "returned_count": pagePaths, "has_more": true})
	want(t, b.call("glob", args{"pattern": "many/*", "offset": pagePaths + 4}), args{"files": []string{fmt.Sprintf("many/%04d", pagePaths+4)}, "has_more": false})
	b.refused("not valid", "glob", args{"pattern": "[a"})
	b.refused("there is no file", "glob", args{"pattern": "nothing/*"})
	b.fails("pathOutsideRoot", request(t, "glob", args{"pattern": "../*"}))
	b.fails("pathOutsideRoot", request(t, "glob", args{"pattern": "/etc/*"}))
}
