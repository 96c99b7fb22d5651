package guard

import (
	"strings"
	"unicode"
)

// command is one simple command that a call runs, as far as it is known.
type command struct {
	fields []field // the first is the command word; never empty
	dir    string  // where it runs, with marks
	base   string  // where the call's relative paths begin, with marks
	why    string  // it is code that is not known, for this reason; "" for a command
	// unparsed is code that the parser does not understand, which some shell may, and
	// top the call's own line.
	unparsed, top bool
	code          string // that was not parsed
	// searched is a command that is looked for where the line says, in PATH.
	searched bool
	// touched is what it reads and writes beside its words, and links are those of its line.
	touched touched
	links   *links
	effort  *effort
	// within are the paths in its words, and from the directories besides its own from which
	// it looks at them; nil until they are asked for.
	within, from *[]string
	// implied is what a shell does itself, which no rule has to allow.
	implied bool
	// through is a command that only runs another one, which is seen by itself.
	through bool
}

// opaque is code that is not known: it may be any command.
func opaque(what, why string) command {
	return command{fields: []field{{text: string(anything), many: true}}, why: what + ": " + why}
}

// show is the command for people, of bounded length.
func (c *command) show() string {
	if c.why != "" {
		what, _, _ := strings.Cut(c.why, ": ")
		return printable(cut(shown.Replace(what), maxShown))
	}
	var b strings.Builder
	for i, f := range c.fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		text := printable(shown.Replace(f.text))
		if text == "" || strings.ContainsAny(text, " \t'\"") {
			text = "'" + text + "'"
		}
		b.WriteString(text)
		if b.Len() > maxShown {
			break
		}
	}
	return strings.ReplaceAll(cut(b.String(), maxShown), "`", "'")
}

// printable is the text without what a terminal or an editor would obey.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// unknown says what about the command word is not known.
func (c *command) unknown() string {
	if _, why, ok := strings.Cut(c.why, ": "); ok {
		return printable(cut(shown.Replace(why), maxShown))
	}
	return "whose first word cannot be known before it runs"
}
