package wide

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDetect(t *testing.T) {
	for head, want := range map[string]Encoding{
		"": None, "\xff": None, "\xff\xfe": LittleEndian, "\xfe\xffx": BigEndian, "\xef\xbb\xbf": None, "ab": None,
	} {
		if got := Detect([]byte(head)); got != want {
			t.Errorf("%q: %q", head, got)
		}
	}
}

// TestDecode decodes any units piece by piece and compares with the standard
// library; what came out gives the same file again.
func TestDecode(t *testing.T) {
	unit := rapid.OneOf(rapid.Uint16(), rapid.SampledFrom([]uint16{'a', '\n', '\r', 0, 0xfeff, 0xd83d, 0xde00, 0xdbff, 0xdfff}))
	rapid.Check(t, func(t *rapid.T) {
		e := rapid.SampledFrom([]Encoding{LittleEndian, BigEndian}).Draw(t, "encoding")
		units := rapid.SliceOf(unit).Draw(t, "units")
		file := e.order().AppendUint16(nil, 0xfeff)
		for _, u := range units {
			file = e.order().AppendUint16(file, u)
		}
		want := string(utf16.Decode(units))
		if rapid.Bool().Draw(t, "odd") {
			file = append(file, rapid.Byte().Draw(t, "half"))
			want += "\ufffd"
		}
		if Detect(file) != e {
			t.Fatalf("detected as %q", Detect(file))
		}
		text := e.Decode(file)
		if again := e.Encode(text); !bytes.Equal(again, file) {
			t.Fatalf("%x became %x", file, again)
		}
		if n := Size(text); n != int64(len(file)-MarkSize) {
			t.Fatalf("the size of %x is told as %d", file, n)
		}
		if strings.Contains(want, "\ufffd") == utf8.Valid(text) && !strings.Contains(string(text), "\ufffd") {
			t.Fatalf("%x became %q", file, text)
		}
		pieces := Decoder{Encoding: e, Replace: true}
		var got []byte
		for rest := file[MarkSize:]; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			got, rest = pieces.Append(got, rest[:n]), rest[n:]
		}
		if got = pieces.End(got); string(got) != want {
			t.Fatalf("%x became %q, not %q", file, got, want)
		}
		read, err := io.ReadAll(NewReader(e, iotest.OneByteReader(bytes.NewReader(file[MarkSize:]))))
		if err != nil || string(read) != want {
			t.Fatalf("%x was read as %q, not %q: %v", file, read, want, err)
		}
	})
}
