package artifacts

import (
	"bytes"
	"encoding/binary"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// encoding is how a text is written in bytes, by its registered name.
type encoding string

// The encodings that a preview can tell apart.
const (
	utf8Encoding    encoding = "utf-8"
	utf16LEEncoding encoding = "utf-16le"
	utf16BEEncoding encoding = "utf-16be"
	latin1Encoding  encoding = "iso-8859-1"
	cp1252Encoding  encoding = "windows-1252"
)

// The byte order marks. UTF-32's begins like UTF-16's; nobody writes UTF-32.
var (
	bomUTF8    = []byte{0xef, 0xbb, 0xbf}
	bomUTF16LE = []byte{0xff, 0xfe}
	bomUTF16BE = []byte{0xfe, 0xff}
	bomUTF32LE = []byte{0xff, 0xfe, 0, 0}
)

// detectEncoding tells how the text is written, or that it is none. Unless
// whole is set, a character may be cut at the end.
func detectEncoding(head []byte, whole bool) (encoding, bool) {
	switch {
	case bytes.HasPrefix(head, bomUTF32LE):
		return "", false
	case bytes.HasPrefix(head, bomUTF16LE):
		return utf16LEEncoding, isUTF16(head, binary.LittleEndian)
	case bytes.HasPrefix(head, bomUTF16BE):
		return utf16BEEncoding, isUTF16(head, binary.BigEndian)
	}
	for _, c := range head {
		if isBinary(c) {
			return "", false
		}
	}
	checked := head
	if !whole {
		checked = trimCut(head)
	}
	if utf8.Valid(checked) {
		return utf8Encoding, true
	}
	return detectSingleByte(head)
}

// isUTF16 reports whether no unit is a control character: two bytes alone are
// too short a signature, audio frames begin with them too.
func isUTF16(head []byte, order binary.ByteOrder) bool {
	for i := 0; i+1 < len(head); i += 2 {
		if unit := order.Uint16(head[i:]); unit < 0x80 && isBinary(byte(unit)) {
			return false
		}
	}
	return true
}

// isBinary reports whether the byte is a control character that no text has.
// Escape, backspace and form feed are in terminal output and old listings.
func isBinary(c byte) bool {
	switch c {
	case '\t', '\n', '\r', '\f', '\b', 0x1b:
		return false
	default:
		return c < 0x20 || c == 0x7f
	}
}

// detectSingleByte tells Latin-1 from Windows-1252 by the range that only the
// latter uses for characters; the five holes in it are in neither.
func detectSingleByte(head []byte) (encoding, bool) {
	enc := latin1Encoding
	for _, c := range head {
		switch {
		case c == 0x81, c == 0x8d, c == 0x8f, c == 0x90, c == 0x9d:
			return "", false
		case c >= 0x80 && c < 0xa0:
			enc = cp1252Encoding
		}
	}
	return enc, true
}

// trimCut drops a character that is cut off at the end of UTF-8 text.
func trimCut(text []byte) []byte {
	for back := 1; back <= min(utf8.UTFMax-1, len(text)); back++ {
		at := len(text) - back
		if utf8.RuneStart(text[at]) {
			if !utf8.FullRune(text[at:]) {
				return text[:at]
			}
			break
		}
	}
	return text
}

// decode makes UTF-8 of a text, without its byte order mark. What is invalid,
// a character that is cut at the end too, becomes U+FFFD.
func (e encoding) decode(text []byte) (string, error) {
	var out []byte
	var err error
	switch e {
	case utf16LEEncoding, utf16BEEncoding:
		out, err = unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder().Bytes(text)
	case latin1Encoding:
		out, err = charmap.ISO8859_1.NewDecoder().Bytes(text)
	case cp1252Encoding:
		out, err = charmap.Windows1252.NewDecoder().Bytes(text)
	default:
		out = bytes.ToValidUTF8(bytes.TrimPrefix(text, bomUTF8), []byte("\uFFFD"))
	}
	return string(out), err
}

// cut shortens the text to at most n bytes, on a character boundary.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}
