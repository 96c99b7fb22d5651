package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// MaxPattern is the longest regular expression, in bytes. RE2 matches in
// linear time; compiling a long one takes memory all the same.
const MaxPattern = 16 << 10

// errNewline is what a pattern gets that can match a line's end only.
var errNewline = errors.New("the pattern spans lines; lines are searched one by one, so \\n can never match")

// Matcher finds the lines that match a regular expression. It may be used
// concurrently.
type Matcher struct {
	re     *regexp.Regexp
	prog   *syntax.Prog
	filter *prefilter // nil when no text must occur in every match
	// exact says that the filter's text is the whole pattern.
	exact bool
}

// NewMatcher compiles a pattern in RE2 syntax, at most [MaxPattern] bytes. It is
// matched against lines without their newline: "^" and "$" stand for a line's
// borders. A carriage return is part of the line, but "$" matches before one at
// the end too.
func NewMatcher(pattern string, ignoreCase bool) (*Matcher, error) {
	if len(pattern) > MaxPattern {
		return nil, fmt.Errorf("the pattern is %d bytes long, at most %d are possible", len(pattern), MaxPattern)
	}
	flags := syntax.Perl &^ syntax.OneLine
	if ignoreCase {
		flags |= syntax.FoldCase
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, err
	}
	tree, err = perLine(tree)
	if err != nil {
		return nil, err
	}
	re, err := regexp.Compile(tree.String())
	if err != nil {
		return nil, err
	}
	m := &Matcher{re: re}
	tree = tree.Simplify()
	if m.prog, err = syntax.Compile(tree); err != nil {
		return nil, err
	}
	m.filter, m.exact = newPrefilter(tree)
	return m, nil
}

// perLine changes an expression so that it never matches a newline and takes
// the borders of the text for those of the line: then a whole buffer can be searched
// as if it were one line after the other.
func perLine(re *syntax.Regexp) (*syntax.Regexp, error) {
	switch re.Op {
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, '\n') {
			return nil, errNewline
		}
	case syntax.OpAnyChar:
		re.Op = syntax.OpAnyCharNotNL
	case syntax.OpBeginText:
		re.Op = syntax.OpBeginLine
	case syntax.OpEndText:
		re.Op = syntax.OpEndLine
		re.Flags &^= syntax.WasDollar
	case syntax.OpEndLine:
		cr := &syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune{'\r'}}
		return &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: syntax.OpQuest, Sub: []*syntax.Regexp{cr}}, re}}, nil
	case syntax.OpCharClass:
		re.Rune = without(re.Rune, '\n')
		if len(re.Rune) == 0 {
			re.Op = syntax.OpNoMatch
		}
	}
	for i, sub := range re.Sub {
		var err error
		if re.Sub[i], err = perLine(sub); err != nil {
			return nil, err
		}
	}
	return re, nil
}

// without takes one rune out of a character class, which is a list of ranges.
func without(class []rune, r rune) []rune {
	var out []rune
	for i := 0; i < len(class); i += 2 {
		lo, hi := class[i], class[i+1]
		if r < lo || hi < r {
			out = append(out, lo, hi)
			continue
		}
		if lo < r {
			out = append(out, lo, r-1)
		}
		if r < hi {
			out = append(out, r+1, hi)
		}
	}
	return out
}

// The bounds of a prefilter. More texts than these are slower to look for than
// the expression itself.
const (
	maxTexts  = 8
	maxText   = 64 // bytes of one
	maxCross  = 16 // texts while concatenations are multiplied out
	minUseful = 1
)

// text is a string that must occur in the line.
type text struct {
	bytes string
	fold  bool // in any case; then it is lower-case ASCII without k and s
}

// need says what a line must hold for a part of the expression to match.
type need struct {
	// exact lists everything that the part can match, nil when that is too much.
	exact []text
	// any is a set of which one must occur, nil when there is none.
	any []text
}

// newPrefilter derives what must occur in every match, and whether that is
// the same as a match.
func newPrefilter(re *syntax.Regexp) (*prefilter, bool) {
	n := analyse(re)
	if n.exact != nil && usable(n.exact) {
		return makePrefilter(n.exact), true
	}
	if best := better(n.any, n.exact); usable(best) {
		return makePrefilter(best), false
	}
	return nil, false
}

func analyse(re *syntax.Regexp) need {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return need{exact: []text{{}}}
	case syntax.OpLiteral:
		return literal(re)
	case syntax.OpCharClass:
		return classNeed(re.Rune)
	case syntax.OpCapture:
		return analyse(re.Sub[0])
	case syntax.OpPlus:
		n := analyse(re.Sub[0])
		return need{any: better(n.any, n.exact)}
	case syntax.OpRepeat:
		if re.Min > 0 {
			n := analyse(re.Sub[0])
			return need{any: better(n.any, n.exact)}
		}
	case syntax.OpAlternate:
		return alternate(re.Sub)
	case syntax.OpConcat:
		return concat(re.Sub)
	}
	return need{}
}

// literal is the need of a literal. One in any case can be looked for only
// where each letter has just the two ASCII forms, which k and s have not: the
// Kelvin sign and the long s fold to them.
func literal(re *syntax.Regexp) need {
	if slices.Contains(re.Rune, utf8.RuneError) {
		return need{} // it matches every byte that is not UTF-8, too
	}
	if re.Flags&syntax.FoldCase == 0 {
		return need{exact: []text{{bytes: string(re.Rune)}}}
	}
	best, run, letters, all := "", []byte(nil), false, true
	flush := func() {
		if len(run) > len(best) {
			best = string(run)
		}
		run = run[:0]
	}
	for _, r := range re.Rune {
		r = unicode.ToLower(r)
		if r >= 0x80 || r == 'k' || r == 's' {
			flush()
			all = false
			continue
		}
		letters = letters || 'a' <= r && r <= 'z'
		run = append(run, byte(r))
	}
	flush()
	switch t := []text{{bytes: best, fold: letters}}; {
	case all:
		return need{exact: t}
	case best != "":
		return need{any: t}
	}
	return need{}
}

// classNeed multiplies out a small character class.
func classNeed(ranges []rune) need {
	var n need
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i+1]-ranges[i] > maxTexts {
			return need{}
		}
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if n.exact = append(n.exact, text{bytes: string(r)}); len(n.exact) > maxTexts || r == utf8.RuneError {
				return need{}
			}
		}
	}
	return n
}

func alternate(subs []*syntax.Regexp) need {
	n := need{exact: []text{}, any: []text{}}
	for _, sub := range subs {
		s := analyse(sub)
		if s.exact == nil || n.exact == nil {
			n.exact = nil
		} else if n.exact = append(n.exact, s.exact...); len(n.exact) > maxCross {
			n.exact = nil
		}
		best := better(s.any, s.exact)
		if best == nil || n.any == nil {
			n.any = nil
		} else if n.any = append(n.any, best...); len(n.any) > maxCross {
			n.any = nil
		}
	}
	return n
}

func concat(subs []*syntax.Regexp) need {
	exact := []text{{}} // everything that the parts since the last gap can match
	whole := true       // there was no gap
	var best []text
	for _, sub := range subs {
		s := analyse(sub)
		if product := cross(exact, s.exact); product != nil {
			exact = product
			continue
		}
		best = better(better(best, exact), better(s.any, s.exact))
		whole = false
		if exact = s.exact; exact == nil || len(exact) > maxCross {
			exact = []text{{}}
		}
	}
	if whole {
		return need{exact: exact}
	}
	return need{any: better(best, exact)}
}

// cross joins every text of a with every one of b, nil when that is too much
// or cannot be said by texts.
func cross(a, b []text) []text {
	if a == nil || b == nil || len(a)*len(b) > maxCross {
		return nil
	}
	out := make([]text, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			if len(x.bytes)+len(y.bytes) > maxText {
				return nil
			}
			t := text{bytes: x.bytes + y.bytes, fold: x.fold || y.fold}
			// A text is folded as a whole or not at all.
			if t.fold && (!x.fold && hasLetter(x.bytes) || !y.fold && hasLetter(y.bytes)) {
				return nil
			}
			out = append(out, t)
		}
	}
	return out
}

func hasLetter(s string) bool {
	for i := range len(s) {
		if c := s[i] | 0x20; 'a' <= c && c <= 'z' || s[i] >= 0x80 {
			return true
		}
	}
	return false
}

// better returns the set that rules out more lines: that with the longer
// shortest text, then the smaller one.
func better(a, b []text) []text {
	switch {
	case !usable(a):
		if usable(b) {
			return b
		}
		return nil
	case !usable(b):
		return a
	case shortest(b) > shortest(a), shortest(b) == shortest(a) && len(b) < len(a):
		return b
	}
	return a
}

func usable(set []text) bool {
	return len(set) > 0 && len(set) <= maxTexts && shortest(set) >= minUseful
}

func shortest(set []text) int {
	n := maxText + 1
	for _, t := range set {
		n = min(n, len(t.bytes))
	}
	return n
}
