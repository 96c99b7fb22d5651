package guard

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// pattern is what a rule says about commands: the name of a program, flags and
// words, such as `rm -rf /*`.
//
//   - The name is a glob and is compared with the last part of the command word's
//     path, unless it holds a slash itself.
//   - Flags must all be there, in any order, alone or together: -rf is -r -f, -fr,
//     --recursive --force, --rec --for. More of them do not matter. rm -r is
//     rm -rf: the second flag only keeps rm from asking.
//   - Plain words must be the first ones in this order; values of flags may stand
//     between. Words that are paths, globs or key=value may stand anywhere.
//   - In paths * is within one name and ** across. A path is compared as it is
//     once . .. and // are gone, from the directory that the command runs in; a
//     relative one in a pattern begins at the workspace. One that ends in /* stands
//     for the directory itself as well.
//   - A last word * is any more words, also none.
type pattern struct {
	name     []element
	rawName  string
	text     string     // as it is written
	whole    bool       // the name is compared with the whole command word
	flags    [][]string // each satisfied by one of these spellings
	plain    []wordGlob
	anywhere []wordGlob
}

type wordGlob struct {
	forms  [][]element // any of them
	begins []string    // what each of them begins with that stands there to the letter
	isPath bool
	home   bool // it begins with the user's home
}

// parsePattern reads a pattern. It is split as a shell splits a line; quotes and
// backslashes take the meaning of globs away.
func parsePattern(text string) (*pattern, error) {
	var words []string
	p := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	for w, err := range p.WordsSeq(strings.NewReader(text)) {
		if err != nil {
			words = strings.Fields(text)
			break
		}
		words = append(words, patternWord(w))
	}
	if len(words) == 0 {
		return nil, errors.New("a pattern of commands is empty")
	}
	if len(text) > maxLine {
		return nil, fmt.Errorf("a pattern of commands has at most %d bytes", maxLine)
	}
	c := &pattern{name: globElements(words[0], false), rawName: words[0], whole: strings.Contains(words[0], "/")}
	if len(words) > 1 && words[len(words)-1] == "*" {
		words = words[:len(words)-1]
	}
	for _, w := range words[1:] {
		switch {
		case len(w) > 1 && w[0] == '-' && w != "--":
			c.addFlag(w)
		case w == "--":
		default:
			c.addWord(w)
		}
	}
	return c, nil
}

// needed are the flags that a command must have. For rm, -f changes what is asked
// and not what is removed: with -r it need not be there.
func (p *pattern) needed(certain bool) [][]string {
	if certain || p.rawName != "rm" || !slices.ContainsFunc(p.flags, func(f []string) bool { return f[0] == "-r" }) {
		return p.flags
	}
	return slices.DeleteFunc(slices.Clone(p.flags), func(f []string) bool { return f[0] == "-f" })
}

// patternWord is a word of a pattern with what was quoted escaped.
func patternWord(w *syntax.Word) string {
	var b strings.Builder
	quoted := func(s string) {
		for _, r := range s {
			if strings.ContainsRune(`*?\`, r) {
				b.WriteByte('\\')
			}
			b.WriteRune(r)
		}
	}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			text := part.Value
			if i == 0 && (text == "~" || strings.HasPrefix(text, "~/")) {
				text = string(home) + text[1:]
			}
			b.WriteString(text)
		case *syntax.SglQuoted:
			quoted(part.Value)
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					quoted(lit.Value)
				} else {
					b.WriteByte('*')
				}
			}
		default:
			b.WriteByte('*') // a variable or a substitution: whatever it is
		}
	}
	return b.String()
}

// sameFlags are the flags of well-known programs that mean the same.
var sameFlags = sync.OnceValue(func() map[string][][]string {
	return map[string][][]string{
		"rm":    {{"-r", "-R", "--recursive"}, {"-f", "--force"}, {"-i"}, {"-d", "--dir"}, {"-v", "--verbose"}},
		"cp":    {{"-r", "-R", "--recursive", "-a", "--archive"}, {"-f", "--force"}},
		"mv":    {{"-f", "--force"}},
		"ln":    {{"-f", "--force"}, {"-s", "--symbolic"}},
		"chmod": {{"-R", "--recursive"}},
		"chown": {{"-R", "--recursive"}},
		"chgrp": {{"-R", "--recursive"}},
		"git":   {{"-f", "--force"}, {"-d", "--delete"}, {"-a", "--all"}},
	}
})

// spellingsOf are the flags that mean the same as this one.
func (p *pattern) spellingsOf(flag string) []string {
	for _, same := range sameFlags()[base(p.rawName)] {
		if slices.Contains(same, flag) {
			return same
		}
	}
	return []string{flag}
}

func (p *pattern) addFlag(w string) {
	if strings.HasPrefix(w, "--") || len(w) == 2 {
		p.flags = append(p.flags, p.spellingsOf(w))
		return
	}
	// -rf is -r and -f, and -delete may be a word of its own.
	if len(w) > 4 {
		p.flags = append(p.flags, []string{w})
		return
	}
	for _, r := range w[1:] {
		p.flags = append(p.flags, p.spellingsOf("-"+string(r)))
	}
}

func (p *pattern) addWord(w string) {
	isPath := strings.HasPrefix(w, "/") || strings.HasPrefix(w, "./") || strings.HasPrefix(w, "../") || w == "." || w == ".." || strings.HasPrefix(w, string(home))
	g := wordGlob{isPath: isPath, home: strings.HasPrefix(w, string(home))}
	if isPath {
		for _, form := range pathForms(w) {
			g.forms = append(g.forms, globElements(form, true))
		}
	} else {
		g.forms = [][]element{globElements(w, false)}
	}
	for _, form := range g.forms {
		var b strings.Builder
		for _, e := range form {
			if e.kind != exactly {
				break
			}
			b.WriteRune(e.r)
		}
		g.begins = append(g.begins, b.String())
	}
	if isPath || strings.ContainsAny(w, "*?[/=~:@") {
		p.anywhere = append(p.anywhere, g)
	} else {
		p.plain = append(p.plain, g)
	}
}

// pathForms are a path and, where it is all that is in a directory, the directory.
func pathForms(w string) []string {
	clean := func(s string) string {
		for len(s) > 1 && strings.HasSuffix(s, "/") {
			s = strings.TrimSuffix(s, "/")
		}
		if s == "" {
			return "/"
		}
		return strings.TrimPrefix(s, "./")
	}
	forms := []string{clean(w)}
	for _, all := range []string{"/**", "/*"} {
		if parent, ok := strings.CutSuffix(forms[0], all); ok && parent != "." && parent != ".." {
			forms = append(forms, clean(parent))
			break
		}
	}
	return forms
}

// base is the last part of a path, without what marks a program on Windows.
func base(word string) string {
	name := word[strings.LastIndexAny(word, `/\`)+1:]
	lower := strings.ToLower(name)
	for _, end := range []string{".exe", ".com", ".cmd", ".bat"} {
		if strings.HasSuffix(lower, end) {
			return name[:len(name)-len(end)]
		}
	}
	return name
}

// found is how a command compares with a pattern.
type found int

const (
	no        found = iota
	beyond          // there is more to compare than is compared
	perhaps         // the command word is not known
	byUnknown       // arguments that are not known may make it match
	yes
)

// systemDirs are where programs are what their names say.
var systemDirs = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

// elsewhere reports whether the program may be anybody's that has this name: it is called by
// a path outside of the system's directories, or looked for in a PATH that the line sets.
func (c *command) elsewhere() bool {
	word := c.fields[0].text
	if !strings.ContainsAny(word, `/\`) {
		return c.searched
	}
	return !slices.Contains(systemDirs, path.Dir(word))
}

// match compares. With certain nothing that is not known matches, nor does the name of a
// program that may be anybody's, and names are compared to the letter; otherwise case
// does not matter, as on some systems.
func (p *pattern) match(c *command, certain bool) found {
	word := c.fields[0].text
	name := word
	if !p.whole {
		name = base(word)
	}
	if certain {
		if !known(name) || !p.whole && c.elsewhere() || !c.effort.compare(len(name)*(len(p.name)+1)) || !meet(p.name, elementsOf(name)) {
			return no
		}
	} else {
		if !known(base(word)) {
			return perhaps // it may also be a program that runs the pattern's
		}
		if !c.effort.compare(len(name) * (len(p.name) + 1)) {
			return beyond
		}
		if !meet(lowered(p.name), lowered(elementsOf(name))) {
			// mkfs.ext4 is mkfs.
			family, _, ok := strings.Cut(name, ".")
			if !ok || p.rawName != "mkfs" || family != "mkfs" {
				return no
			}
		}
	}
	result := p.argumentsOf(c, certain)
	if result == byUnknown && c.why != "" {
		return perhaps // the program is known, and not what it is told
	}
	return result
}

func lowered(all []element) []element {
	out := slices.Clone(all)
	for i, e := range out {
		if e.kind == exactly && e.r < 0x80 && 'A' <= e.r && e.r <= 'Z' {
			out[i].r += 'a' - 'A'
		}
	}
	return out
}

// argument is one argument, and what it may be.
type argument struct {
	field
	flag      bool // it begins with a dash, and flags are still looked for
	afterFlag bool // it may be the value of the flag before it
}

func argumentsOf(fields []field) []argument {
	args := make([]argument, 0, len(fields))
	over, previous := false, false
	for _, f := range fields {
		if !over && f.text == "--" {
			over, previous = true, false
			continue
		}
		a := argument{field: f, flag: !over && len(f.text) > 1 && f.text[0] == '-', afterFlag: previous}
		previous = a.flag && !strings.Contains(a.text, "=")
		args = append(args, a)
	}
	return args
}

// argumentsOf compares the arguments.
func (p *pattern) argumentsOf(c *command, certain bool) found {
	fewer := new(bool)
	if !c.effort.compare(len(c.fields) * (len(p.flags) + argumentWork)) {
		*fewer = true
		c = &command{fields: c.fields[:1], dir: c.dir, base: c.base, links: c.links, effort: c.effort}
	}
	args := argumentsOf(c.fields[1:])
	m := matching{certain: certain, command: c, dir: c.dir, base: c.base, args: args, used: make([]bool, len(args)), fewer: fewer}
	result := yes
	for _, step := range []func() found{
		func() found { return m.flags(p.needed(certain)) },
		func() found {
			if f := m.plain(p.plain); f != no || !m.words(p.plain) {
				return f
			}
			return yes
		},
		func() found { return m.anywhere(p.anywhere, strings.Contains(p.rawName, "*")) },
	} {
		if f := step(); f == no && *fewer && !certain {
			return beyond
		} else if f == no {
			return no
		} else if f < result {
			result = f
		}
	}
	return result
}
