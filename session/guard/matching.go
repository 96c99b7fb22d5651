package guard

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// matching is one comparison of arguments.
type matching struct {
	certain bool
	command *command
	dir     string
	base    string
	args    []argument
	used    []bool // by something that is not known; one word is one thing
	fewer   *bool  // set when not all was compared: no may be yes
}

// wild finds an argument that may be anything and has not been used.
func (m *matching) wild(flags bool) bool {
	if m.certain {
		return false
	}
	for i, a := range m.args {
		begins := strings.HasPrefix(a.text, string(anything))
		if !flags {
			begins = begins || strings.HasPrefix(a.text, string(outside)) || strings.HasPrefix(a.text, string(solid))
		}
		if a.flag || !begins || m.used[i] {
			continue
		}
		m.used[i] = !a.many
		return true
	}
	return false
}

func (m *matching) flags(all [][]string) found {
	missing := 0
	for _, spellings := range all {
		if !slices.ContainsFunc(m.args, func(a argument) bool { return a.flag && isFlag(a.text, spellings, m.certain) }) {
			missing++
		}
	}
	switch {
	case missing == 0:
		return yes
	case slices.ContainsFunc(m.args, func(a argument) bool { return a.flag && open(a.text) && !m.certain }), m.wild(true):
		return byUnknown // one word can hold them all
	}
	return no
}

// isFlag reports whether an argument is, or holds, one of the spellings.
func isFlag(arg string, spellings []string, certain bool) bool {
	name, _, _ := strings.Cut(arg, "=")
	for _, s := range spellings {
		switch {
		case name == s:
			return true
		case strings.HasPrefix(s, "--") && !certain:
			// Long flags may be cut short.
			if len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(s, name) {
				return true
			}
		case len(s) == 2 && !strings.HasPrefix(arg, "--") && strings.Contains(arg[1:], s[1:]):
			return true
		}
	}
	return false
}

// plain finds the words that must come first.
func (m *matching) plain(words []wordGlob) found {
	result := yes
	next := 0
	for i, a := range m.args {
		if next == len(words) {
			return result
		}
		if a.flag {
			continue
		}
		if m.is(words[next], a) {
			next++
			if !known(a.text) {
				result = byUnknown
				if a.many {
					return result // it may be all of them
				}
				m.used[i] = true
			}
			continue
		}
		if !a.afterFlag || m.certain {
			return no
		}
	}
	if next == len(words) {
		return result
	}
	return no
}

// anywhere finds the words that may stand anywhere.
func (m *matching) anywhere(words []wordGlob, wild bool) found {
	result := yes
	for _, w := range words {
		best := no
		for i, a := range m.args {
			if a.flag || m.used[i] && !known(a.text) || !m.is(w, a) {
				continue
			}
			if known(a.text) || globOnly(a.text) {
				best = yes
				break
			}
			best = byUnknown
			m.used[i] = !a.many
		}
		if best == no && w.isPath && !m.certain && m.beside(w, wild) {
			best = yes
		}
		if best < result {
			result = best
		}
		if best == no {
			return no
		}
	}
	return result
}

// is compares one word.
func (m *matching) is(w wordGlob, a argument) bool {
	if m.certain && !known(a.text) {
		return false
	}
	texts := []string{a.text}
	if w.isPath {
		var all bool
		texts, all = m.seen(a.text)
		*m.fewer = *m.fewer || !all
	}
	return slices.ContainsFunc(texts, func(t string) bool {
		found, all := w.is(t, m.command.effort)
		*m.fewer = *m.fewer || !all
		return found
	})
}

// is compares one text. It is false where that is more work than there may be.
func (w *wordGlob) is(t string, e *effort) (found, compared bool) {
	var elements []element
	for i, form := range w.forms {
		if !e.compare(wordWork + len(w.begins[i])/8) {
			return false, false
		}
		if apartAt(w.begins[i], t) {
			continue
		}
		if elements == nil {
			elements = elementsOf(t)
			if rest, ok := strings.CutPrefix(t, string(home)); ok && w.home {
				elements = append([]element{{r: home}}, elementsOf(rest)...)
			}
		}
		if !e.compare(len(t) + len(form)*len(elements)) {
			return false, false
		}
		if meet(form, elements) {
			return true, true
		}
	}
	return false, true
}

// apartAt reports whether a text, before anything in it that is not known, is another one
// than what begins so.
func apartAt(begins, text string) bool {
	for i := range len(begins) {
		if i == len(text) {
			return true
		}
		if text[i] >= utf8.RuneSelf {
			return false // it may be a mark
		}
		if text[i] != begins[i] {
			return true
		}
	}
	return false
}
