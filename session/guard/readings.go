package guard

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reading is a text as one shell may read it.
type reading struct {
	text string
	lang syntax.LangVariant
}

// carriageReturn stands for a carriage return, which shells take for a character like any
// other, in a text for the parser, which takes it for a blank.
const carriageReturn = "\u240D"

// maxComments is how often a text is read again for the comments in it.
const maxComments = 16

// reading follows the statements of a text, as far as it can be parsed: a shell runs
// what stands before the error.
func (w *walker) reading(sh *shell, r reading, stdin string) error {
	p := syntax.NewParser(syntax.Variant(r.lang))
	var first error
	for stmt, err := range p.StmtsSeq(strings.NewReader(r.text)) {
		// It may go on after an error, also when nobody asks it to: the loop has no end
		// of its own, which would be a panic.
		switch {
		case first != nil:
		case err != nil:
			first = err
		default:
			w.stmt(sh, stmt, stdin)
		}
	}
	return first
}

// otherReadings are the ways to read a text in which some shells differ from the parser.
func (w *walker) otherReadings(sh *shell, text string) []reading {
	var all []reading
	plain := text
	if strings.Contains(text, "\r") {
		// The parser takes it for a blank; to shells it is a character.
		plain = strings.ReplaceAll(text, "\r", carriageReturn)
		all = append(all, reading{plain, syntax.LangBash})
	}
	if ended := w.comments(plain); ended != plain {
		plain = ended
		all = append(all, reading{plain, syntax.LangBash})
	}
	if ended := endedComments(plain); ended != plain {
		plain = ended
		all = append(all, reading{plain, syntax.LangBash})
	}
	if before, ok := strings.CutSuffix(plain, `\`); ok && !sh.bash {
		all = append(all, reading{before, syntax.LangBash}) // with nothing behind it, it is nothing to some
	}
	if !sh.bash && (strings.Contains(text, "&>") || strings.Contains(text, "((")) {
		// To shells that know neither, the one ends a command, and the other is two subshells.
		all = append(all, reading{strings.ReplaceAll(plain, "&>", "& >"), syntax.LangPOSIX})
	}
	return all
}

// comments is the text whose comments end where their lines do. The parser takes a
// backslash at the end of one for a line that goes on, and shells do not.
func (w *walker) comments(text string) string {
	for range maxComments {
		if !strings.Contains(text, "\\\n") || !strings.Contains(text, "#") {
			return text
		}
		if w.charge(len(text)) {
			return text
		}
		p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
		file, err := p.Parse(strings.NewReader(text), "")
		if err != nil {
			return text // which is asked about anyway
		}
		ended := []byte(text)
		syntax.Walk(file, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.Comment); ok {
				at := int(c.Hash.Offset())
				if i := strings.IndexByte(text[at:], '\n'); i > 0 && text[at+i-1] == '\\' {
					ended[at+i-1] = ' '
				}
			}
			return true
		})
		if string(ended) == text {
			return text
		}
		text = string(ended)
	}
	w.give("the line", "it has more comments than are followed")
	return text
}

// endedComments is the same as comments, by a look at the characters: the parser does not
// tell all the comments that it passes over. It knows no here-documents and no substitutions
// in quotes, and may take for a comment what is none; so it is one reading of several.
func endedComments(text string) string {
	out := []byte(text)
	quote, begins := byte(0), true // begins: a word may
	for i := 0; i < len(out); i++ {
		c := out[i]
		switch {
		case quote == '\'':
			if c == quote {
				quote = 0
			}
		case c == '\\':
			if i++; i < len(out) && out[i] != '\n' {
				begins = false
			}
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"':
			quote, begins = c, false
		case c == '#' && begins:
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return string(out)
			}
			if i += end; out[i-1] == '\\' {
				out[i-1] = ' '
			}
		default:
			begins = strings.IndexByte(" \t\n;&|()<>`", c) >= 0
		}
	}
	return string(out)
}
