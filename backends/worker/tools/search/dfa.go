package search

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

const (
	// maxStates bounds the states of an automaton: some two kilobytes each.
	// When it is reached, all are forgotten.
	maxStates = 1024
	// maxForgets is how often that may happen in one search before the standard
	// library's matcher, which needs no states, is the quicker one.
	maxForgets = 16
)

// dfa is a deterministic automaton that is built while it runs. It answers one
// question, whether there is a match, some ten times as quickly as package
// regexp, which cannot be asked less than where. It belongs to one goroutine.
type dfa struct {
	prog    *syntax.Prog
	states  map[string]*state
	start   *state // at the beginning of a line
	forgets int

	// Room for the work of step.
	stack []uint32
	seen  []uint32 // seen[pc] == round: pc is in the closure
	round uint32
	key   []byte
}

// state is a set of instructions, not yet followed through what consumes
// nothing, since that depends on the next character too.
type state struct {
	next  [utf8.RuneSelf]*state
	wide  map[rune]*state
	pcs   []uint32
	last  rune // stands for the characters that may have come before
	found bool // a match ended before the last character
}

// The characters that stand for all that may have come before: which one it
// was matters to "^", "$" and "\b" only.
const (
	lastNewline = '\n'
	lastWord    = 'a'
	lastOther   = ' '
)

func newDFA(prog *syntax.Prog) *dfa {
	d := &dfa{prog: prog, seen: make([]uint32, len(prog.Inst))}
	d.forget()
	return d
}

// forget starts the cache anew.
func (d *dfa) forget() {
	d.states = make(map[string]*state)
	d.start = d.state([]uint32{uint32(d.prog.Start)}, lastNewline, false)
}

// usable is false once the automaton would need too many states.
func (d *dfa) usable() bool { return d.forgets <= maxForgets }

// find returns a position in the first line of text with a match, from a
// line's beginning on, or -1. The position is in the line or at its end.
func (d *dfa) find(text []byte, from int) int {
	s := d.start
	for i := from; i < len(text); {
		var next *state
		size := 1
		if b := text[i]; b < utf8.RuneSelf {
			if next = s.next[b]; next == nil {
				next = d.step(s, rune(b))
			}
		} else {
			var r rune
			if r, size = utf8.DecodeRune(text[i:]); s.wide[r] != nil {
				next = s.wide[r]
			} else {
				next = d.step(s, r)
			}
		}
		if next.found {
			return i
		}
		s = next
		i += size
	}
	if from < len(text) && text[len(text)-1] != '\n' && d.step(s, '\n').found {
		return len(text)
	}
	return -1
}

// step returns the state after a character and remembers it.
func (d *dfa) step(s *state, r rune) *state {
	d.round++
	around := syntax.EmptyOpContext(s.last, r)
	var next []uint32
	found := false
	add := func(pc uint32) { d.stack = append(d.stack, pc) }
	for _, pc := range s.pcs {
		add(pc)
		for len(d.stack) > 0 {
			pc := d.stack[len(d.stack)-1]
			d.stack = d.stack[:len(d.stack)-1]
			if d.seen[pc] == d.round {
				continue
			}
			d.seen[pc] = d.round
			switch inst := &d.prog.Inst[pc]; inst.Op {
			case syntax.InstAlt, syntax.InstAltMatch:
				add(inst.Arg)
				add(inst.Out)
			case syntax.InstCapture, syntax.InstNop:
				add(inst.Out)
			case syntax.InstEmptyWidth:
				if syntax.EmptyOp(inst.Arg)&^around == 0 {
					add(inst.Out)
				}
			case syntax.InstMatch:
				found = true
			case syntax.InstRuneAny:
				next = append(next, inst.Out)
			case syntax.InstRuneAnyNotNL:
				if r != '\n' {
					next = append(next, inst.Out)
				}
			case syntax.InstRune, syntax.InstRune1:
				if inst.MatchRune(r) {
					next = append(next, inst.Out)
				}
			}
		}
	}
	// A match may begin at every character.
	next = append(next, uint32(d.prog.Start))
	slices.Sort(next)
	next = slices.Compact(next)
	last := lastOther
	switch {
	case r == '\n':
		last = lastNewline
	case syntax.IsWordChar(r):
		last = lastWord
	}
	if len(d.states) >= maxStates {
		d.forgets++
		d.forget()
	}
	t := d.state(next, last, found)
	if r < utf8.RuneSelf {
		s.next[r] = t
	} else if len(s.wide) < utf8.RuneSelf {
		if s.wide == nil {
			s.wide = make(map[rune]*state)
		}
		s.wide[r] = t
	}
	return t
}

// state returns the state that is this set.
func (d *dfa) state(pcs []uint32, last rune, found bool) *state {
	d.key = d.key[:0]
	for _, pc := range pcs {
		d.key = append(d.key, byte(pc), byte(pc>>8), byte(pc>>16), byte(pc>>24))
	}
	d.key = append(d.key, byte(last))
	if found {
		d.key = append(d.key, 1)
	}
	if s := d.states[string(d.key)]; s != nil {
		return s
	}
	s := &state{pcs: pcs, last: last, found: found}
	d.states[string(d.key)] = s
	return s
}
