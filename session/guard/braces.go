package guard

import (
	"slices"
	"strconv"

	"mvdan.cc/sh/v3/syntax"
)

// braces are the words that one with {a,b} and {1..3} in it becomes.
func (w *walker) braces(word *syntax.Word) []*syntax.Word {
	// SplitBraces changes the word, which may be expanded again.
	own := &syntax.Word{Parts: slices.Clone(word.Parts)}
	if !syntax.SplitBraces(own) {
		return []*syntax.Word{word}
	}
	all, ok := braced(own.Parts, maxBraces)
	if !ok {
		return []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{Value: string(anything)}}}}
	}
	return all
}

// braced are the words of these parts, at most most.
func braced(parts []syntax.WordPart, most int) ([]*syntax.Word, bool) {
	all := []*syntax.Word{{}}
	for _, part := range parts {
		exp, ok := part.(*syntax.BraceExp)
		if !ok {
			for _, word := range all {
				word.Parts = append(word.Parts, part)
			}
			continue
		}
		var choices []*syntax.Word
		if exp.Sequence {
			if choices, ok = sequence(exp, most); !ok {
				return nil, false
			}
		} else {
			for _, elem := range exp.Elems {
				more, ok := braced(elem.Parts, most)
				if !ok || len(choices)+len(more) > most {
					return nil, false
				}
				choices = append(choices, more...)
			}
		}
		if len(all)*len(choices) > most {
			return nil, false
		}
		var next []*syntax.Word
		for _, word := range all {
			for _, choice := range choices {
				next = append(next, &syntax.Word{Parts: append(slices.Clone(word.Parts), choice.Parts...)})
			}
		}
		all = next
	}
	return all, true
}

// sequence is {1..5}, {a..e} and both with a step.
func sequence(exp *syntax.BraceExp, most int) ([]*syntax.Word, bool) {
	if len(exp.Elems) < 2 {
		return nil, false
	}
	from, to := exp.Elems[0].Lit(), exp.Elems[1].Lit()
	a, errA := strconv.Atoi(from)
	b, errB := strconv.Atoi(to)
	letters := errA != nil || errB != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			return nil, false
		}
		a, b = int(from[0]), int(to[0])
	}
	step := 1
	if len(exp.Elems) > 2 {
		n, err := strconv.Atoi(exp.Elems[2].Lit())
		if err != nil {
			return nil, false
		}
		step = max(1, max(n, -n))
	}
	if a > b {
		step = -step
	}
	if (b-a)/step < 0 || (b-a)/step >= most {
		return nil, false
	}
	var all []*syntax.Word
	for i := range (b-a)/step + 1 {
		v := a + i*step
		text := strconv.Itoa(v)
		if letters {
			text = string(rune(v))
		}
		all = append(all, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: text}}})
	}
	return all, true
}
