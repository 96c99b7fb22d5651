package artifacts

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func utf16Bytes(text string, order binary.AppendByteOrder, bom bool) string {
	units := utf16.Encode([]rune(text))
	if bom {
		units = append([]uint16{0xfeff}, units...)
	}
	var b []byte
	for _, u := range units {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

func TestPreviewOfText(t *testing.T) {
	s, _, _ := newStore(t)
	for _, tt := range []struct {
		label, name, content string
		want                 Preview
	}{
		{"plain", "a.txt", "hello\n", Preview{Kind: KindText, MediaType: "text/plain", Text: "hello\n", Encoding: "utf-8"}},
		{"empty", "a", "", Preview{Kind: KindText, MediaType: "text/plain", Encoding: "utf-8"}},
		{"UTF-8", "LICENSE", "smörgås ✓", Preview{Kind: KindText, MediaType: "text/plain", Text: "smörgås ✓", Encoding: "utf-8"}},
		{"UTF-8 with mark", "a.txt", "\xef\xbb\xbfhello", Preview{Kind: KindText, MediaType: "text/plain", Text: "hello", Encoding: "utf-8"}},
		{"UTF-16LE", "a.txt", utf16Bytes("smörgås 🍣", binary.LittleEndian, true), Preview{Kind: KindText, MediaType: "text/plain", Text: "smörgås 🍣", Encoding: "utf-16le"}},
		{"UTF-16BE", "a.csv", utf16Bytes("a,b\r\n", binary.BigEndian, true), Preview{Kind: KindCSV, MediaType: "text/csv", Text: "a,b\r\n", Encoding: "utf-16be"}},
		{"Latin-1", "a.txt", "sm\xf6rg\xe5s", Preview{Kind: KindText, MediaType: "text/plain", Text: "smörgås", Encoding: "iso-8859-1"}},
		{"Windows-1252", "a.txt", "\x93sm\xf6rg\xe5s\x94 5 \x80", Preview{Kind: KindText, MediaType: "text/plain", Text: "“smörgås” 5 €", Encoding: "windows-1252"}},
		{"markdown", "README.MD", "# T", Preview{Kind: KindMarkdown, MediaType: "text/markdown", Text: "# T", Encoding: "utf-8"}},
		{"JSON by name", "broken.json", "{", Preview{Kind: KindJSON, MediaType: "application/json", Text: "{", Encoding: "utf-8"}},
		{"JSON by content", "result", ` {"a": [1]} `, Preview{Kind: KindJSON, MediaType: "application/json", Text: ` {"a": [1]} `, Encoding: "utf-8"}},
		{"a number is no document", "count", "42", Preview{Kind: KindText, MediaType: "text/plain", Text: "42", Encoding: "utf-8"}},
		{"TSV", "a.tsv", "a\tb", Preview{Kind: KindCSV, MediaType: "text/tab-separated-values", Text: "a\tb", Encoding: "utf-8"}},
		{"SVG by content", "drawing", "<?xml version='1.0'?>\n<svg/>", Preview{Kind: KindText, MediaType: "image/svg+xml", Text: "<?xml version='1.0'?>\n<svg/>", Encoding: "utf-8"}},
		{"terminal output", "log", "\x1b[31mred\x1b[0m\r\n", Preview{Kind: KindText, MediaType: "text/plain", Text: "\x1b[31mred\x1b[0m\r\n", Encoding: "utf-8"}},
		{"text that says it is an image", "a.png", "no", Preview{Kind: KindText, MediaType: "text/plain", Text: "no", Encoding: "utf-8"}},
		{"binary that says it is text", "a.md", "a\x00b", Preview{Kind: KindBinary, MediaType: "application/octet-stream", Truncated: true}},
		{"PDF", "a", "%PDF-1.7\n\x00", Preview{Kind: KindBinary, MediaType: "application/pdf", Truncated: true}},
		{"printable PDF", "a.pdf", "%PDF-1.4\n1 0 obj", Preview{Kind: KindBinary, MediaType: "application/pdf", Truncated: true}},
		{"gzip", "a.txt", "\x1f\x8b\x08\x00", Preview{Kind: KindBinary, MediaType: "application/x-gzip", Truncated: true}},
		{"UTF-32", "a", "\xff\xfe\x00\x00a\x00\x00\x00", Preview{Kind: KindBinary, MediaType: "application/octet-stream", Truncated: true}},
		{"sound that begins like UTF-16", "a", "\xff\xfe\x01\x00\x02\x00", Preview{Kind: KindBinary, MediaType: "application/octet-stream", Truncated: true}},
		{"odd UTF-16", "a", "\xff\xfea\x00b", Preview{Kind: KindText, MediaType: "text/plain", Text: "a\ufffd", Encoding: "utf-16le"}},
		{"holes of Windows-1252", "a", "x\x81", Preview{Kind: KindBinary, MediaType: "application/octet-stream", Truncated: true}},
	} {
		t.Run(tt.label, func(t *testing.T) {
			a := publish(t, s, "s-1", tt.name, tt.content)
			p, err := s.PreviewOf(a, 0)
			if err != nil {
				t.Fatal(err)
			}
			if p.MediaType != a.MediaType {
				t.Errorf("published as %s, previewed as %s", a.MediaType, p.MediaType)
			}
			if !equalPreview(p, tt.want) {
				t.Errorf("got  %+v\nwant %+v", p, tt.want)
			}
		})
	}
}

func equalPreview(a, b Preview) bool {
	return a.Kind == b.Kind && a.MediaType == b.MediaType && a.Text == b.Text && a.Encoding == b.Encoding &&
		bytes.Equal(a.Data, b.Data) && a.Width == b.Width && a.Height == b.Height && a.Truncated == b.Truncated
}

func TestTruncationOnCharacters(t *testing.T) {
	s, _, _ := newStore(t)
	const text = "añ✓🍣z"
	for name, content := range map[string]string{
		"utf-8":    text,
		"utf-16le": utf16Bytes(text, binary.LittleEndian, true),
		"utf-16be": utf16Bytes(text, binary.BigEndian, true),
	} {
		a := publish(t, s, "s-1", name, content)
		for n := int64(1); n <= int64(len(text))+1; n++ {
			p, err := s.PreviewOf(a, n)
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.ValidString(p.Text) || int64(len(p.Text)) > n || !strings.HasPrefix(text, p.Text) ||
				p.Truncated != (p.Text != text) || n-int64(len(p.Text)) >= utf8.UTFMax && p.Truncated {
				t.Errorf("%s, %d bytes: %q, truncated %v", name, n, p.Text, p.Truncated)
			}
		}
	}
}

// Whatever a content is, its preview is valid, within the limit, and a prefix
// of what a larger limit shows.
func TestPreviewOfAnything(t *testing.T) {
	s, _, _ := newStore(t)
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.OneOf(
			rapid.SliceOfN(rapid.Byte(), 0, 64),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(s) }),
			rapid.Map(rapid.String(), func(s string) []byte { return []byte(utf16Bytes(s, binary.BigEndian, true)) }),
		).Draw(t, "content")
		a, err := s.Publish(t.Context(), PublishRequest{SessionID: "s", Name: "n", Size: -1}, bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		limit := rapid.Int64Range(1, 80).Draw(t, "limit")
		p, err := s.PreviewOf(a, limit)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := s.PreviewOf(a, 1000)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.ValidString(p.Text) || int64(len(p.Text)) > limit {
			t.Fatalf("preview %q of limit %d", p.Text, limit)
		}
		if whole.Kind == KindText && (whole.Truncated || p.Encoding == whole.Encoding && !strings.HasPrefix(whole.Text, p.Text)) {
			t.Fatalf("%q, whole %+v", p.Text, whole)
		}
	})
}

func TestLateLatin1AndLateNUL(t *testing.T) {
	s, _, _ := newStore(t)
	long := strings.Repeat("x", sniffLen+10)
	a := publish(t, s, "s-1", "late", long+"\xe4")
	if p, err := s.PreviewOf(a, MaxPreviewBytes+1); err != nil || p.Encoding != "iso-8859-1" || p.Text != long+"ä" || p.Truncated {
		t.Errorf("late Latin-1: %s, %v, %v", p.Encoding, p.Truncated, err)
	}
	a = publish(t, s, "s-1", "nul", long+"\x00\xff")
	if p, err := s.PreviewOf(a, 0); err != nil || p.Kind != KindText || p.Text != long+"\x00\ufffd" {
		t.Errorf("late NUL: %s, %v", p.Kind, err)
	}
}

func TestCharacterAcrossTheEndOfTheHead(t *testing.T) {
	s, _, _ := newStore(t)
	text := "x" + strings.Repeat("ä", sniffLen) // every second byte is in the middle of one
	a := publish(t, s, "s-1", "text", text)
	if p, err := s.PreviewOf(a, 0); err != nil || p.Encoding != "utf-8" || p.Text != text || a.MediaType != "text/plain" {
		t.Errorf("%s, %s, %v", a.MediaType, p.Encoding, err)
	}
	a = publish(t, s, "s-1", "long", strings.Repeat(text, 10))
	if p, err := s.PreviewOf(a, 1001); err != nil || p.Encoding != "utf-8" || p.Text != text[:1001] {
		t.Errorf("%s, %d bytes, %v", p.Encoding, len(p.Text), err)
	}
}

func encode(t *testing.T, w, h int, how func(*bytes.Buffer, image.Image) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := how(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPreviewOfImages(t *testing.T) {
	s, _, _ := newStore(t)
	jpg := encode(t, 33, 5, func(b *bytes.Buffer, i image.Image) error { return jpeg.Encode(b, i, nil) })
	profile := "\xff\xe2\xff\xff" + strings.Repeat("p", 0xffff-2) // a colour profile of 64 KiB
	for _, tt := range []struct {
		label, content, mediaType string
		width, height             int
	}{
		{"PNG", encode(t, 7, 300, func(b *bytes.Buffer, i image.Image) error { return png.Encode(b, i) }), "image/png", 7, 300},
		{"GIF", encode(t, 257, 2, func(b *bytes.Buffer, i image.Image) error { return gif.Encode(b, i, nil) }), "image/gif", 257, 2},
		{"JPEG", jpg, "image/jpeg", 33, 5},
		{"JPEG behind profiles", jpg[:2] + profile + profile + "\xff" + jpg[2:], "image/jpeg", 33, 5},
		{"WebP lossy", "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x90\x01\x2c\x01", "image/webp", 400, 300},
		{"WebP lossless", "RIFF\x24\x00\x00\x00WEBPVP8L\x18\x00\x00\x00\x2f\x8f\xc1\x4a\x00", "image/webp", 400, 300},
		{"WebP extended", "RIFF\x24\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x8f\x01\x00\x2b\x01\x00", "image/webp", 400, 300},
		{"cut PNG", "\x89PNG\r\n\x1a\n\x00\x00", "image/png", 0, 0},
		{"cut JPEG", jpg[:30], "image/jpeg", 0, 0},
		{"JPEG without a frame", "\xff\xd8\xff\xda\x00\x02", "image/jpeg", 0, 0},
		{"JPEG of fill", "\xff\xd8" + strings.Repeat("\xff", 5000), "image/jpeg", 0, 0},
	} {
		t.Run(tt.label, func(t *testing.T) {
			a := publish(t, s, "s-1", tt.label+".txt", tt.content)
			p, err := s.Preview(a.ID, 0)
			want := Preview{Kind: KindImage, MediaType: tt.mediaType, Data: []byte(tt.content), Width: tt.width, Height: tt.height}
			if err != nil || !equalPreview(p, want) {
				t.Errorf("got %s %s %dx%d, truncated %v, %v", p.Kind, p.MediaType, p.Width, p.Height, p.Truncated, err)
			}
			p, err = s.Preview(a.ID, 3)
			want.Data, want.Truncated = nil, true
			if err != nil || !equalPreview(p, want) {
				t.Errorf("too large: got %+v, %v", p, err)
			}
		})
	}
}

func FuzzImageSize(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xc0\x00\x11\x08\x00\x05\x00\x21"))
	f.Add([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\xff\xff\xff\xff\x00\x00\x00\x01"))
	f.Add([]byte("RIFF\x24\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x8f\x01\x00\x2b\x01\x00"))
	f.Add([]byte("GIF89a\x01\x00\x02\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if w, h := imageSize(imageType(data), bytes.NewReader(data)); w < 0 || h < 0 {
			t.Errorf("%d x %d", w, h)
		}
	})
}
