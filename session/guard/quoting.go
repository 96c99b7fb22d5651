package guard

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// globbed marks the globs of a text.
func globbed(text string) string {
	if !strings.ContainsAny(text, "*?[") {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '*':
			out.WriteRune(anyChars)
		case '?':
			out.WriteRune(anyChar)
		case '[':
			end := strings.IndexByte(text[i+1:], ']')
			if end == 0 { // []x] and []]: the first ] is a member
				if more := strings.IndexByte(text[i+2:], ']'); more >= 0 {
					end = more + 1
				}
			}
			if end <= 0 {
				out.WriteByte(c)
				continue
			}
			out.WriteRune(anyChar)
			i += end + 1
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// unquoteDouble takes the backslashes out of text in double quotes.
func unquoteDouble(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			i++
			if text[i] == '\n' {
				continue
			}
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// unescape decodes the escapes of $'…' and, without quotes, of printf and echo -e,
// which also print NULs.
func unescape(text string, quotes bool) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var out strings.Builder
	number := func(i, base, most int) (int, int) { // digits behind i
		n, v := 0, 0
		for n < most && i+n < len(text) {
			d, err := strconv.ParseUint(text[i+n:i+n+1], base, 8)
			if err != nil {
				break
			}
			v, n = v*base+int(d), n+1
		}
		return v, n
	}
	plain := map[byte]byte{'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': 10, 'r': 13, 't': 9, 'v': 11, '\\': '\\'}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 >= len(text) {
			out.WriteByte(text[i])
			continue
		}
		i++
		c := text[i]
		switch b, ok := plain[c]; {
		case ok:
			out.WriteByte(b)
		case quotes && (c == '\'' || c == '"' || c == '?'):
			out.WriteByte(c)
		case c == 'x':
			if v, n := number(i+1, 16, 2); n > 0 {
				out.WriteByte(byte(v))
				i += n
			}
		case c == 'u' || c == 'U':
			most := 4
			if c == 'U' {
				most = 8
			}
			if v, n := number(i+1, 16, most); n > 0 && v <= utf8.MaxRune {
				out.WriteRune(rune(v))
				i += n
			}
		case c == 'c' && i+1 < len(text):
			i++
			out.WriteByte(text[i] & 0x1f)
		case '0' <= c && c <= '7':
			most := 3
			if !quotes && c == '0' {
				most = 4
			}
			v, n := number(i, 8, most)
			out.WriteByte(byte(v))
			i += n - 1
		default:
			out.WriteByte('\\')
			out.WriteByte(c)
		}
	}
	if quotes {
		word, _, _ := strings.Cut(out.String(), "\x00") // which ends there
		return word
	}
	return out.String()
}
