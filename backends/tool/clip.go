package tool

import "strings"

// Clip is s, or where that is longer than most bytes its head of at most so many
// and an ellipsis. It is cut between characters, and what is no text in the head
// is left out: for what quotes somebody's words in an error, an event or a log.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
