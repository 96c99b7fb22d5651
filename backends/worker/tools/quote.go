package tools

import (
	bytesof "encoding/binary"
	"math/bits"
)

// quoted appends text that is valid UTF-8 as a JSON string. It looks at eight
// bytes at a time: the text of a page is most of a call's work.
func quoted(dst, text []byte) []byte {
	dst = append(dst, '"')
	for {
		n := plain(text)
		dst = append(dst, text[:n]...)
		if n == len(text) {
			return append(dst, '"')
		}
		dst = escaped(dst, text[n])
		text = text[n+1:]
	}
}

// plain is how many bytes at the beginning of text stand for themselves in a
// JSON string.
func plain(text []byte) int {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		word := bytesof.LittleEndian.Uint64(text[n:])
		quote, slash := word^('"'*ones), word^('\\'*ones)
		// The high bit of a byte is set where that is a control, a quote or a
		// backslash; above the first of them it may be set where it is none.
		found := ((word-' '*ones)&^word | (quote-ones)&^quote | (slash-ones)&^slash) & highs
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] >= ' ' && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// escaped appends what stands for a byte that does not stand for itself.
func escaped(dst []byte, c byte) []byte {
	const hex = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	default:
		return append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
	}
}
