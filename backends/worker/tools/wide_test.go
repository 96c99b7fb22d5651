package tools

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

var wides = []wide.Encoding{wide.LittleEndian, wide.BigEndian}

// TestReadWide reads texts in UTF-16, and calls binary what has no mark or is none.
func TestReadWide(t *testing.T) {
	for _, e := range wides {
		t.Run(e.String(), func(t *testing.T) {
			file := func(text string) string { return string(e.Encode([]byte(text))) }
			b := newBench(t, map[string]string{
				"text": file("a\r\n\u00e9\U0001f600\nc"), "mark": file(""), "half": file("a\xed\xa0\xbdb\n"), "odd": file("a\n") + "x",
				"none": file("text")[wide.MarkSize:], "nul": file("a\x00b"), "long": file(numbered(5000)),
			})
			read := func(a args) map[string]any { t.Helper(); return b.call("read_file", a) }
			want(t, read(args{"path": "text"}), args{
				"content": "a\r\n\u00e9\U0001f600\nc", "encoding": e.String(), "num_lines": 3, "total_lines": 3, "lossy": nil,
				"content_sha256": sum(b.get("text")), "truncated": false,
			})
			want(t, read(args{"path": "text", "offset": 2, "limit": 1}), args{"content": "\u00e9\U0001f600\n", "start_line": 2, "total_lines": 3, "truncated": true})
			want(t, read(args{"path": "mark"}), args{"content": "", "num_lines": 0, "total_lines": 0, "encoding": e.String()})
			want(t, read(args{"path": "half"}), args{"content": "a\ufffdb\n", "lossy": true, "total_lines": 1})
			want(t, read(args{"path": "odd"}), args{"content": "a\n\ufffd", "lossy": true, "total_lines": 2})
			want(t, read(args{"path": "long", "offset": 4999}), args{"content": "line 4999\nline 5000\n", "total_lines": 5000})
			want(t, read(args{"path": "text", "encoding": "base64", "byte_limit": 2}), args{"encoding": "base64", "num_bytes": 2})
			b.refused("binary file", "read_file", args{"path": "none"})
			b.refused("binary file", "read_file", args{"path": "nul"})
		})
	}
}

// TestReadWidePages: pages join to the text, however they are cut.
func TestReadWidePages(t *testing.T) {
	benches := limitedBenches(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := benches[rapid.IntRange(0, len(benches)-1).Draw(rt, "bench")]
		unit := rapid.SampledFrom([]string{"a", "\u00e9", "\n", "\r\n", "words of text ", "\U0001f600", strings.Repeat("\u20ac\U0001f600x", 9_001), strings.Repeat("\u0001", 100_000)})
		text := strings.Join(rapid.SliceOfN(unit, 0, 8).Draw(rt, "units"), "")
		e := rapid.SampledFrom(wides).Draw(rt, "encoding")
		file := string(e.Encode([]byte(text)))
		b.put("file", file)
		a := args{"path": "file"}
		if limit := rapid.IntRange(0, 5).Draw(rt, "limit"); limit > 0 {
			a["limit"] = limit
		}
		var got strings.Builder
		for {
			page := b.call("read_file", a)
			if page["content_sha256"] != sum(file) || page["encoding"] != e.String() || page["lossy"] != nil {
				rt.Fatalf("the page has the hash %v, the encoding %v, lossy %v", page["content_sha256"], page["encoding"], page["lossy"])
			}
			got.WriteString(page["content"].(string))
			if page["truncated"] == false {
				break
			}
			a["continuation"] = page["continuation"]
		}
		if got.String() != text {
			rt.Fatalf("the pages hold %d bytes, the text %d", got.Len(), len(text))
		}
	})
}

// TestEditWide edits texts in UTF-16, to the byte.
func TestEditWide(t *testing.T) {
	for _, row := range []struct{ name, text, tail, old, new, want string }{
		{"a word", "a\nb\nc\n", "", "b", "\U0001f600", "a\n\U0001f600\nc\n"},
		{"carriage returns", "a\r\nb\r\nc", "", "a\nb", "a\nx\ny", "a\r\nx\r\ny\r\nc"},
		{"mixed ends", "a\r\nb\nc\rd\r\n", "", "b", "B", "a\r\nB\nc\rd\r\n"},
		{"half pairs", "\xed\xa0\xbda\xed\xb8\x80\n", "x", "a", "b", "\xed\xa0\xbdb\xed\xb8\x80\n"},
		{"no bytes in the middle of units", "\u6100a\u0061\n", "", "aa", "b", "\u6100b\n"},
	} {
		for _, e := range wides {
			t.Run(row.name+" "+e.String(), func(t *testing.T) {
				file := string(e.Encode([]byte(row.text))) + row.tail
				b := newBench(t, map[string]string{"f": file})
				got := b.call("edit_file", args{"path": "f", "old_text": row.old, "new_text": row.new})
				after := string(e.Encode([]byte(row.want))) + row.tail
				if b.get("f") != after {
					t.Errorf("it holds %q, want %q", b.get("f"), after)
				}
				want(t, got, args{"replacements": 1, "old_file_sha": sum(file), "new_file_sha": sum(after), "written_bytes": len(after), "encoding": e.String()})
				if diff := got["diff"].(string); !strings.Contains(diff, "\n+") || strings.Contains(diff, "\x00") {
					t.Errorf("the diff is %q", diff)
				}
			})
		}
	}
	// Over another file it is shown what was there; what is written is what was given.
	b := newBench(t, map[string]string{"f": string(wide.LittleEndian.Encode([]byte("old\n")))})
	got := b.call("write_file", args{"path": "f", "content": "new\n"})
	want(t, got, args{"encoding": nil})
	if diff := got["diff"].(string); !strings.Contains(diff, "-old\n+new\n") || b.get("f") != "new\n" {
		t.Errorf("it holds %q, the diff is %q", b.get("f"), diff)
	}
}
