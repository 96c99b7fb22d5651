// Package wide turns text in UTF-16 into UTF-8 and back, to the byte. It knows
// files that begin with a byte order mark only: without one nothing tells such
// text from a binary file.
//
// Half a surrogate pair, which UTF-16 can hold and UTF-8 cannot, is kept in three
// bytes that are no valid UTF-8 (the notation is called WTF-8), and half a unit at
// the end of a file in two, so that nothing is lost on the way there and back.
//
// It opens no files, and what is not about UTF-16 may not enter.
package wide

import (
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// MarkSize is the length of the byte order mark of both encodings, in bytes.
const MarkSize = 2

// loose is the first of the two bytes for half a unit, with the unit's two highest
// bits: no UTF-8 holds such a byte.
const loose = 0xfc

// The borders of the surrogates.
const (
	surrogates = 0xd800
	lows       = 0xdc00
	behind     = 0xe000
	pairs      = 0x10000
)

// Encoding is one of the two orders of bytes.
type Encoding int

// The encodings. None is everything that has no byte order mark of UTF-16.
const (
	None Encoding = iota
	LittleEndian
	BigEndian
)

// Detect tells the encoding of a file by its first [MarkSize] bytes.
func Detect(head []byte) Encoding {
	switch {
	case len(head) < MarkSize:
		return None
	case head[0] == 0xff && head[1] == 0xfe:
		return LittleEndian
	case head[0] == 0xfe && head[1] == 0xff:
		return BigEndian
	}
	return None
}

// String is the name of the encoding in results; empty for [None].
func (e Encoding) String() string {
	switch e {
	case LittleEndian:
		return "utf16le"
	case BigEndian:
		return "utf16be"
	default:
		return ""
	}
}

func (e Encoding) order() interface {
	binary.ByteOrder
	binary.AppendByteOrder
} {
	if e == BigEndian {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// Decode is the text of a whole file without its mark.
func (e Encoding) Decode(file []byte) []byte {
	d := Decoder{Encoding: e}
	text := make([]byte, 0, len(file)/2+len(file)/8)
	return d.End(d.Append(text, file[MarkSize:]))
}

// Encode is the whole file that holds the text, its mark included.
func (e Encoding) Encode(text []byte) []byte {
	order := e.order()
	file := order.AppendUint16(make([]byte, 0, MarkSize+2*len(text)), 0xfeff)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		switch {
		case r != utf8.RuneError || n > 1:
		case text[i] >= loose && i == len(text)-2:
			return append(file, text[i]<<6|text[i+1]&0x3f)
		default:
			if unit, ok := surrogate(text[i:]); ok {
				r, n = unit, 3
			}
		}
		i += n
		if r >= pairs {
			high, low := utf16.EncodeRune(r)
			file = order.AppendUint16(file, uint16(high))
			r = low
		}
		file = order.AppendUint16(file, uint16(r))
	}
	return file
}

// surrogate reads half a surrogate pair.
func surrogate(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xed || b[1]&0xe0 != 0xa0 || b[2]&0xc0 != 0x80 {
		return 0, false
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f), true
}

// Size is how many bytes of a file the decoded text was, its mark aside.
func Size(text []byte) (size int64) {
	for _, b := range text {
		switch {
		case b >= loose:
			size++
		case b >= 0xf0:
			size += 4
		case b < 0x80 || b >= 0xc0:
			size += 2
		}
	}
	return size
}

// Decoder turns pieces of a file, from behind its mark on, into text.
type Decoder struct {
	Encoding Encoding
	// Replace puts U+FFFD in the place of what is no text, instead of keeping it.
	Replace bool

	rest    [1]byte // half a unit
	resting bool
	high    rune // the first half of a pair; 0: none
}

// Append appends the text of the next piece to dst, but for a character that
// has not ended yet.
func (d *Decoder) Append(dst, piece []byte) []byte {
	order := d.Encoding.order()
	if d.resting && len(piece) > 0 {
		dst = d.unit(dst, rune(order.Uint16([]byte{d.rest[0], piece[0]})))
		piece, d.resting = piece[1:], false
	}
	for ; len(piece) >= 2; piece = piece[2:] {
		dst = d.unit(dst, rune(order.Uint16(piece)))
	}
	if len(piece) == 1 {
		d.rest[0], d.resting = piece[0], true
	}
	return dst
}

// unit appends one unit.
func (d *Decoder) unit(dst []byte, u rune) []byte {
	high := d.high
	d.high = 0
	switch {
	case high != 0 && u >= lows && u < behind:
		return utf8.AppendRune(dst, utf16.DecodeRune(high, u))
	case high != 0:
		dst = d.half(dst, high)
	}
	switch {
	case u < surrogates || u >= behind:
		return utf8.AppendRune(dst, u)
	case u < lows:
		d.high = u
		return dst
	}
	return d.half(dst, u)
}

// half appends half a surrogate pair.
func (d *Decoder) half(dst []byte, u rune) []byte {
	if d.Replace {
		return utf8.AppendRune(dst, utf8.RuneError)
	}
	return append(dst, 0xed, byte(0x80|u>>6&0x3f), byte(0x80|u&0x3f))
}

// End appends what the end of the file leaves unfinished.
func (d *Decoder) End(dst []byte) []byte {
	if d.high != 0 {
		dst = d.half(dst, d.high)
		d.high = 0
	}
	if !d.resting {
		return dst
	}
	d.resting = false
	if d.Replace {
		return utf8.AppendRune(dst, utf8.RuneError)
	}
	return append(dst, loose|d.rest[0]>>6, 0x80|d.rest[0]&0x3f)
}

// NewReader reads the text of a file from behind its mark on, with U+FFFD for
// what is no text.
func NewReader(e Encoding, file io.Reader) io.Reader {
	return &reader{file: file, decoder: Decoder{Encoding: e, Replace: true}, raw: make([]byte, 32<<10)}
}

type reader struct {
	file    io.Reader
	decoder Decoder
	raw     []byte
	buffer  []byte
	text    []byte // what is left of buffer
	err     error
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var n int
		n, r.err = r.file.Read(r.raw)
		r.buffer = r.decoder.Append(r.buffer[:0], r.raw[:n])
		if errors.Is(r.err, io.EOF) {
			r.buffer = r.decoder.End(r.buffer)
		}
		r.text = r.buffer
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}
