package connection

import "strings"

// plainCharacters are what no shell reads anything into.
const plainCharacters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789%+,-./:=@_"

// Quote returns words as one line that a POSIX shell reads as exactly those
// words.
func Quote(words ...string) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteByte(' ')
		}
		if word != "" && strings.Trim(word, plainCharacters) == "" {
			b.WriteString(word)
			continue
		}
		b.WriteByte('\'')
		b.WriteString(strings.ReplaceAll(word, "'", `'\''`))
		b.WriteByte('\'')
	}
	return b.String()
}
