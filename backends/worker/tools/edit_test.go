package tools

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestEditFile(t *testing.T) {
	for _, row := range []struct{ name, file, old, new, want string }{
		{"plain", "a\nb\nc\n", "b", "B", "a\nB\nc\n"},
		{"no final newline", "a\nb", "b", "B", "a\nB"},
		{"a mark at the beginning", "\ufeffa\r\nb\r\n", "a\nb", "a\nB", "\ufeffa\r\nB\r\n"},
		{"the first line behind a mark", "\ufeffa\nb\n", "a", "A", "\ufeffA\nb\n"},
		{"carriage returns", "a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", "a\r\nx\r\ny\r\nc\r\n"},
		{"one word to lines", "a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n"},
		{"last line without an end", "a\r\nb", "b", "x\ny", "a\r\nx\r\ny"},
		{"a line goes", "a\r\nb\r\nc\r\n", "b\n", "", "a\r\nc\r\n"},
		{"an end goes", "a\r\nb\r\n", "a\n", "a", "ab\r\n"},
		{"mixed, not named", "a\r\nb\nc\rd\r\n", "b", "B", "a\r\nB\nc\rd\r\n"},
		{"mixed, kept around a change", "a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nb\nX\nd\n", "a\r\nb\nX\r\nd\n"},
		{"mixed, like the line around", "a\r\nb\nc\r\n", "b", "b\nb2", "a\r\nb\nb2\nc\r\n"},
		{"mixed, the other line", "a\r\nb\nc\r\n", "a", "a\na2", "a\r\na2\r\nb\nc\r\n"},
		{"bare carriage returns", "a\rb\rc", "b", "B", "a\rB\rc"},
		{"a named end", "a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n"},
		{"from newline", "a\r\nb\r\nc", "\nb\n", "\nB\n", "a\r\nB\r\nc"},
		{"doubled", "a\r\r\nb\r\n", "b\n", "c\n", "a\r\r\nc\r\n"},
		{"bytes that are no text", "\xff\x80a\nb\xff", "a\nb", "a\nB", "\xff\x80a\nB\xff"},
		{"a new end in a file without", "a", "a", "a\nb\n", "a\nb\n"},
		{"overlap", "aaa", "aa", "b", "ba"},
		{"multiplied", "x\n", "x\n", "x\nx\n", "x\nx\n"},
		{"common ends", "abcabc\n", "abcabc", "abc", "abc\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t, map[string]string{"f": row.file})
			got := b.call("edit_file", args{"path": "f", "old_text": row.old, "new_text": row.new})
			if b.get("f") != row.want {
				t.Errorf("it holds %q, want %q", b.get("f"), row.want)
			}
			want(t, got, args{"replacements": 1, "old_file_sha": sum(row.file), "new_file_sha": sum(row.want), "written_bytes": len(row.want)})
		})
	}
}

func TestEditsThatAreRefused(t *testing.T) {
	file := "func a() {\n\treturn 1\n}\n\nfunc b() {\n\treturn 1\n}\n"
	b := newBench(t, map[string]string{"f": file, "bin": "\x00"})
	for _, row := range []struct{ old, new, words string }{
		{"return 1", "return 2", "stands 2 times in \"f\" (lines 2, 6)"},
		{"", "x", "old_text is empty"},
		{"x", "x", "the same"},
		{"func c()", "x", "not in \"f\""},
		{"func a() {\n    return 1\n}", "x", "Line 1 and following differ from it in white space only"},
		{"func a() {\n\treturn 5\n}", "x", "Its first line is there as line 1"},
		{"func a() {\r\n\treturn 1", "x", "It has carriage returns"},
	} {
		b.refused(row.words, "edit_file", args{"path": "f", "old_text": row.old, "new_text": row.new})
	}
	b.refused("there is no file", "edit_file", args{"path": "nothing", "old_text": "a", "new_text": "b"})
	b.refused("is a directory", "edit_file", args{"path": ".", "old_text": "a", "new_text": "b"})
	if b.get("f") != file {
		t.Error("a refused edit changed the file")
	}
	if err := os.Truncate(filepath.Join(b.dir, "bin"), maxEditBytes+1); err != nil {
		t.Fatal(err)
	}
	b.refused("can be edited", "edit_file", args{"path": "bin", "old_text": "a", "new_text": "b"})
	want(t, b.call("edit_file", args{"path": "f", "old_text": "return 1", "new_text": "return 2", "replace_all": true}), args{"replacements": 2})
	if b.get("f") != strings.ReplaceAll(file, "1", "2") {
		t.Errorf("it holds %q", b.get("f"))
	}
}

// TestEditKeepsTheRest: with every "\r\n" written as "\n", an edit does what
// replacing in the text does, and a line that is the same before and after keeps its end.
func TestEditKeepsTheRest(t *testing.T) {
	line := rapid.SampledFrom([]string{"a", "b", "", "ab", "x y"})
	end := rapid.SampledFrom([]string{"\n", "\r\n"})
	rapid.Check(t, func(t *rapid.T) {
		var file, plain strings.Builder
		for range rapid.IntRange(1, 8).Draw(t, "lines") {
			l := line.Draw(t, "line")
			file.WriteString(l + end.Draw(t, "end"))
			plain.WriteString(l + "\n")
		}
		old := strings.Join(rapid.SliceOfN(line, 1, 3).Draw(t, "old"), "\n")
		replacement := strings.Join(rapid.SliceOfN(line, 0, 3).Draw(t, "new"), "\n")
		if old == "" {
			return
		}
		e := newEdit([]byte(file.String()), old, replacement)
		got := string(e.apply())
		if n := strings.Count(plain.String(), old); n != len(e.matches) {
			t.Fatalf("%q: %d matches, not %d", file.String(), len(e.matches), n)
		}
		if want := strings.ReplaceAll(plain.String(), old, replacement); strings.ReplaceAll(got, "\r\n", "\n") != want {
			t.Fatalf("%q: %q became %q", file.String(), want, got)
		}
		if len(e.matches) > 0 {
			first, last := e.matches[0].start, len(file.String())-e.matches[len(e.matches)-1].end
			if !strings.HasPrefix(got, file.String()[:first]) || !strings.HasSuffix(got, file.String()[len(file.String())-last:]) {
				t.Fatalf("%q: around the matches it became %q", file.String(), got)
			}
		}
	})
}

// TestEditsAtOnce: of edits that go on at once none is lost, whatever they call the file.
func TestEditsAtOnce(t *testing.T) {
	b := newBench(t, map[string]string{"d/f": numbered(40)})
	names := []string{"d/f", "d/link", "way/f", filepath.Join(b.dir, "way", "link")}
	for link, target := range map[string]string{"d/link": "f", "way": filepath.Join(b.dir, "d")} {
		if err := os.Symlink(target, filepath.Join(b.dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			a := args{"path": names[i%len(names)], "old_text": fmt.Sprintf("line %d\n", i+1), "new_text": fmt.Sprintf("done %d\n", i+1)}
			if r, err := b.Call(t.Context(), request(t, "edit_file", a)); err != nil || r.IsError {
				t.Errorf("%d: %+v, %v", i, r, err)
			}
		})
	}
	group.Wait()
	if got := b.get("d/f"); got != strings.ReplaceAll(numbered(40), "line", "done") {
		t.Errorf("it holds %q", got)
	}
}
