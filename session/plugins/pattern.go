package plugins

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// pattern is a regular expression whose cost is known. Schemas mean those of
// ECMAScript; these are RE2's, which take a time that is in proportion to the text
// whatever the expression: lookarounds and references to groups are refused.
type pattern struct {
	*regexp.Regexp
	text string
	cost int // of 8 bytes of text
}

const (
	// maxInstructions is how large a regular expression may become, in instructions
	// of its automaton. It takes a step for each of them for each byte of text.
	maxInstructions = 4096
	// maxPrograms is how large all of a schema may become together. Each is compiled
	// when the schema is checked, and again when it is used.
	maxPrograms = 128 << 10
)

// pattern compiles a regular expression.
func (c *compiler) pattern(text, at string) (*pattern, error) {
	plain := unescape(text)
	parsed, err := syntax.Parse(plain, syntax.Perl)
	if err != nil {
		return nil, wrong(at, "the pattern %s cannot be used: %s", clip(text), clip(err.Error()))
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, wrong(at, "the pattern %s cannot be used: %s", clip(text), clip(err.Error()))
	}
	if c.programs += len(program.Inst); len(program.Inst) > maxInstructions || c.programs > maxPrograms {
		return nil, fmt.Errorf("cannot be used: at %s: the pattern %s is too large", clip(at), clip(text))
	}
	re, err := regexp.Compile(plain)
	if err != nil {
		return nil, wrong(at, "the pattern %s cannot be used: %s", clip(text), clip(err.Error()))
	}
	return &pattern{re, text, len(program.Inst)}, nil
}

// unescape writes ECMAScript's \uXXXX as RE2 has it.
func unescape(text string) string {
	if !strings.Contains(text, `\u`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] != '\\' || i+1 == len(text):
			b.WriteByte(text[i])
		case text[i+1] == 'u' && i+6 <= len(text):
			b.WriteString(`\x{` + text[i+2:i+6] + "}")
			i += 5
		default:
			b.WriteString(text[i : i+2])
			i++
		}
	}
	return b.String()
}

// matches reports whether the text has a match.
func (k *check) matches(p *pattern, text string) bool {
	k.spend(1 + p.cost*(len(text)/8))
	return p.MatchString(text)
}
