package guard

import "strings"

// quotedWords are the words of a text as env -S and xargs read it: apart by blanks,
// with quotes and backslashes taken out.
func quotedWords(text, blanks string) []string {
	var all []string
	var cur strings.Builder
	begun, quote := false, byte(0)
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(text):
			i++
			cur.WriteByte(text[i])
			begun = true
		case quote == 0 && (c == '\'' || c == '"'):
			quote, begun = c, true
		case quote == 0 && strings.IndexByte(blanks, c) >= 0:
			if begun {
				all = append(all, cur.String())
			}
			cur.Reset()
			begun = false
		default:
			cur.WriteByte(c)
			begun = true
		}
	}
	if begun {
		all = append(all, cur.String())
	}
	return all
}
