package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

func sum(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}

func numbered(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadFile(t *testing.T) {
	b := newBench(t, map[string]string{
		"five": "1\n2\n3\n4\n5\n", "open": "1\n2", "empty": "", "crlf": "\ufeffa\r\nb\rc\n", "latin": "caf\xe9\n", "nl": "\n",
	})
	for _, row := range []struct {
		name string
		args args
		want args
	}{
		{"five", args{}, args{"content": "1\n2\n3\n4\n5\n", "start_line": 1, "num_lines": 5, "total_lines": 5, "truncated": false, "content_sha256": sum("1\n2\n3\n4\n5\n")}},
		{"five", args{"offset": 2, "limit": 2}, args{"content": "2\n3\n", "start_line": 2, "num_lines": 2, "total_lines": 5, "truncated": true}},
		{"five", args{"offset": 4}, args{"content": "4\n5\n", "num_lines": 2, "truncated": false}},
		{"five", args{"offset": 5, "limit": 1}, args{"content": "5\n", "num_lines": 1, "truncated": false}},
		{"open", args{}, args{"content": "1\n2", "num_lines": 2, "total_lines": 2, "truncated": false}},
		{"open", args{"offset": 2}, args{"content": "2", "num_lines": 1, "total_lines": 2}},
		{"open", args{"limit": 1}, args{"content": "1\n", "num_lines": 1, "total_lines": 2, "truncated": true}},
		{"empty", args{}, args{"content": "", "num_lines": 0, "total_lines": 0, "truncated": false, "content_sha256": sum("")}},
		{"nl", args{}, args{"content": "\n", "num_lines": 1, "total_lines": 1}},
		{"crlf", args{}, args{"content": "\ufeffa\r\nb\rc\n", "num_lines": 2, "total_lines": 2}},
		{"latin", args{}, args{"content": "caf\ufffd\n", "lossy": true}},
	} {
		row.args["path"] = row.name
		got := b.call("read_file", row.args)
		want(t, got, row.want)
		want(t, got, args{"path": row.name})
	}
	b.refused("has 5 lines", "read_file", args{"path": "five", "offset": 6})
	b.refused("offset is 0", "read_file", args{"path": "five", "offset": 0})
	b.refused("is a directory", "read_file", args{"path": "."})
	b.refused("encoding is", "read_file", args{"path": "five", "encoding": "latin1"})
	b.refused("byte_offset", "read_file", args{"path": "five", "encoding": "base64", "offset": 1})
	b.refused("need encoding base64", "read_file", args{"path": "five", "byte_limit": 1})
}

// limitedBenches are workspaces whose pages end at different places of the
// pieces in which files are read.
func limitedBenches(t testing.TB) (all []*bench) {
	for _, limit := range []int64{0, 70_001, readChunk - 1, readChunk + 1, readChunk + 2} {
		all = append(all, newBench(t, nil, func(o *Options) { o.MaxOutputBytes = limit }))
	}
	return all
}

// TestReadPages: pages join to the file, whatever it holds and however it is
// cut.
func TestReadPages(t *testing.T) {
	benches := limitedBenches(t)
	rapid.Check(t, func(rt *rapid.T) {
		b := benches[rapid.IntRange(0, len(benches)-1).Draw(rt, "bench")]
		unit := rapid.SampledFrom([]string{"a", "é", "\n", "\r\n", "\r", "words of text ", "😀", "\t", strings.Repeat("x", 150_000), strings.Repeat("€😀", 9_001), strings.Repeat("\u0001", 300_000)})
		content := strings.Join(rapid.SliceOfN(unit, 0, 12).Draw(rt, "units"), "")
		b.put("file", content)
		a := args{"path": "file"}
		if limit := rapid.IntRange(0, 5).Draw(rt, "limit"); limit > 0 {
			a["limit"] = limit
		}
		var got strings.Builder
		lines, at := 0, 1
		for {
			page := b.call("read_file", a)
			if start := int(page["start_line"].(float64)); start != at {
				rt.Fatalf("the page begins at line %d, not %d", start, at)
			}
			text := page["content"].(string)
			got.WriteString(text)
			at += strings.Count(text, "\n")
			lines += int(page["num_lines"].(float64))
			if total := strings.Count(content, "\n"); int(page["total_lines"].(float64)) != total && int(page["total_lines"].(float64)) != total+1 {
				rt.Fatalf("total_lines is %v", page["total_lines"])
			}
			if page["content_sha256"] != sum(content) {
				rt.Fatal("the hash is another file's")
			}
			if page["truncated"] == false {
				break
			}
			if text == "" || page["lossy"] != nil {
				rt.Fatalf("a page is %.20q, lossy %v, and there are more", text, page["lossy"])
			}
			delete(a, "offset")
			a["continuation"] = page["continuation"]
		}
		if got.String() != content {
			rt.Fatalf("the pages hold %d bytes, the file %d", got.Len(), len(content))
		}
	})
}

func TestContinuation(t *testing.T) {
	b := newBench(t, map[string]string{"file": numbered(5000), "other": numbered(4000)})
	page := b.call("read_file", args{"path": "file"})
	want(t, page, args{"num_lines": defaultReadLines, "total_lines": 5000, "truncated": true})
	next := page["continuation"].(string)
	page = b.call("read_file", args{"path": "file", "continuation": next, "limit": 1})
	want(t, page, args{"content": "line 2001\n", "start_line": 2001, "total_lines": 5000, "content_sha256": sum(numbered(5000))})
	for _, bad := range []string{"x", "c1.1.1.1.1.1.", "c1.-1.1.1.1.1." + sum(""), strings.Replace(next, "c1", "c2", 1), next + "zz"} {
		b.refused("continuation", "read_file", args{"path": "file", "continuation": bad})
	}
	b.refused("changed", "read_file", args{"path": "other", "continuation": next})
	b.refused("leave the offset out", "read_file", args{"path": "file", "continuation": next, "offset": 1})
	b.put("file", numbered(5001))
	b.refused("changed", "read_file", args{"path": "file", "continuation": next})
}

// TestReadOfAHugeFile reads parts of files that are far larger than what may be
// in memory, and measures what is.
func TestReadOfAHugeFile(t *testing.T) {
	b := newBench(t, map[string]string{
		"sparse": numbered(100), "lines": strings.Repeat(numbered(10_000), 200),
		"wide": string(wide.LittleEndian.Encode([]byte(strings.Repeat(numbered(10_000), 60)))),
	})
	if err := os.Truncate(filepath.Join(b.dir, "sparse"), 3<<30); err != nil {
		t.Fatal(err)
	}
	const most = 8 * readChunk // of 13 MiB and more
	measured := func(what string, read func()) {
		t.Helper()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		read()
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > most {
			t.Errorf("%s takes %d bytes of memory", what, n)
		}
	}
	measured("a range of bytes", func() {
		page := b.call("read_file", args{"path": "sparse", "encoding": "base64", "byte_offset": 2 << 30, "byte_limit": 10})
		want(t, page, args{"num_bytes": 10, "size": 3 << 30, "content": base64.StdEncoding.EncodeToString(make([]byte, 10)), "truncated": true})
	})
	measured("a range for people", func() {
		if data, err := b.ReadFile(t.Context(), "sparse", 2<<30, 10); err != nil || len(data) != 10 {
			t.Errorf("%d bytes, %v", len(data), err)
		}
	})
	for name, last := range map[string]int{"lines": 2_000_000, "wide": 600_000} {
		measured("the first lines of "+name, func() {
			want(t, b.call("read_file", args{"path": name, "limit": 2}), args{"content": "line 1\nline 2\n", "truncated": true, "total_lines": last})
		})
		measured("the last line of "+name, func() {
			want(t, b.call("read_file", args{"path": name, "offset": last}), args{"content": "line 10000\n", "truncated": false, "total_lines": last})
		})
	}
	measured("a search", func() {
		want(t, b.call("grep", args{"path": "lines", "pattern": "line 9999$", "output_mode": "count"}), args{"total_matches": 200})
	})
}

func TestBase64(t *testing.T) {
	content := string(bytes.Repeat([]byte{0, 1, 2, 0xff, '\n'}, 300_000))
	b := newBench(t, map[string]string{"bin": content, "text": "abc"})
	b.refused("binary file", "read_file", args{"path": "bin"})
	var got []byte
	a := args{"path": "bin", "encoding": "base64"}
	for {
		page := b.call("read_file", a)
		want(t, page, args{"content_sha256": sum(content), "size": len(content), "byte_offset": len(got), "encoding": "base64"})
		data, err := base64.StdEncoding.DecodeString(page["content"].(string))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, data...)
		if page["truncated"] == false {
			break
		}
		a["continuation"] = page["continuation"]
	}
	if string(got) != content {
		t.Errorf("%d bytes", len(got))
	}
	want(t, b.call("read_file", args{"path": "text", "encoding": "base64", "byte_offset": 1, "byte_limit": 1}), args{"content": "Yg==", "truncated": true})
	want(t, b.call("read_file", args{"path": "text", "encoding": "base64", "byte_offset": 9}), args{"content": "", "num_bytes": 0, "truncated": false})
}

func TestImages(t *testing.T) {
	picture := image.NewRGBA(image.Rect(0, 0, 3, 2))
	encode := func(f func(io.Writer) error) string {
		var buf bytes.Buffer
		if err := f(&buf); err != nil {
			t.Fatal(err)
		}
		return buf.String()
	}
	files := map[string]string{
		"image/png":  encode(func(w io.Writer) error { return png.Encode(w, picture) }),
		"image/jpeg": encode(func(w io.Writer) error { return jpeg.Encode(w, picture, nil) }),
		"image/gif":  encode(func(w io.Writer) error { return gif.Encode(w, picture, nil) }),
		"image/webp": "RIFF\x24\x00\x00\x00WEBPVP8L\x00",
	}
	b := newBench(t, files)
	for mime, content := range files {
		r := b.result("read_file", args{"path": mime})
		if len(r.Content) != 1 || r.Content[0].Type != tool.PartImage || r.Content[0].MIMEType != mime || r.Content[0].Data != base64.StdEncoding.EncodeToString([]byte(content)) {
			t.Errorf("%s: %+v", mime, r)
		}
		want(t, b.call("read_file", args{"path": mime}), args{"mime_type": mime, "size": len(content), "content_sha256": sum(content)})
	}
	b.put("large.png", files["image/png"]+strings.Repeat("x", maxImageBytes))
	b.refused("smaller copy", "read_file", args{"path": "large.png"})
	b.put("fits.png", files["image/png"]+strings.Repeat("x", maxImageBytes-len(files["image/png"])))
	if r := b.result("read_file", args{"path": "fits.png"}); len(r.Content[0].Data) > tool.MaxInlineBytes {
		t.Errorf("%d bytes inline", len(r.Content[0].Data))
	}
	want(t, b.call("read_file", args{"path": "large.png", "encoding": "base64", "byte_limit": 4}), args{"content": "iVBORw=="})
}

func TestMaxOutputBytesOfACall(t *testing.T) {
	b := newBench(t, map[string]string{"file": strings.Repeat("é", 1000)})
	r := request(t, "read_file", args{"path": "file"})
	r.MaxOutputBytes = 101
	res, err := b.Call(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(res.StructuredContent, []byte(`"content":"`+strings.Repeat("é", 50)+`"`)) {
		t.Errorf("it is %s", res.StructuredContent)
	}
}
