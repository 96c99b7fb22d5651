package guard

import "unicode/utf8"

// element is one step of a pattern or of a word that is partly known.
type element struct {
	r    rune
	kind kind
}

type kind uint8

const (
	exactly kind = iota // this character
	oneName             // one character of a name, not a slash
	inName              // any number of characters of a name
	across              // any number of characters
)

// elements of a word with marks.
func elementsOf(s string) []element {
	all := make([]element, 0, len(s))
	for _, r := range s {
		switch r {
		case anything, outside:
			all = append(all, element{kind: across})
		case solid:
			all = append(all, element{kind: oneName}, element{kind: across})
		case anyChars:
			all = append(all, element{kind: inName})
		case anyChar:
			all = append(all, element{kind: oneName})
		case someDir, home:
			all = append(all, element{r: '/'}, element{kind: oneName}, element{kind: across})
		case below:
			all = append(all, element{r: '/'}, element{kind: oneName}, element{kind: across}, element{r: '/'}, element{kind: oneName}, element{kind: across})
		default:
			all = append(all, element{r: r})
		}
	}
	return all
}

// globElements are the elements of a rule's glob: * and ?, and in paths **.
// Elsewhere * crosses slashes. A backslash takes the meaning from what follows.
func globElements(s string, isPath bool) []element {
	var all []element
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\\' && i < len(s):
			r, n = utf8.DecodeRuneInString(s[i:])
			i += n
			all = append(all, element{r: r})
		case r == '*' && isPath && (i >= len(s) || s[i] != '*'):
			all = append(all, element{kind: inName})
		case r == '*':
			for i < len(s) && s[i] == '*' {
				i++
			}
			all = append(all, element{kind: across})
		case r == '?':
			all = append(all, element{kind: oneName})
		default:
			all = append(all, element{r: r})
		}
	}
	return all
}

func (e element) many() bool { return e.kind == inName || e.kind == across }

// takes reports whether e, of any kind, can stand for one character of o's.
func (e element) takes(o element) bool {
	switch e.kind {
	case across:
		return true
	case inName, oneName:
		return o.kind != exactly || o.r != '/'
	default:
		switch o.kind {
		case exactly:
			return e.r == o.r
		case across:
			return true
		}
		return e.r != '/'
	}
}

// meet reports whether there is a text that both stand for. A comparison that
// would take too long meets.
func meet(a, b []element) bool {
	if (len(a)+1)*(len(b)+1) > maxGlobWork {
		return true
	}
	// reached[j]: the elements of a so far, and j of b, can be used up together.
	reached := make([]bool, len(b)+1)
	reached[0] = true
	for j := range b {
		reached[j+1] = reached[j] && b[j].many()
	}
	next := make([]bool, len(b)+1)
	for _, x := range a {
		next[0] = reached[0] && x.many()
		for j, y := range b {
			pair := x.takes(y) && y.takes(x)
			switch {
			case reached[j] && pair, // each takes a character and is done
				reached[j+1] && x.many(),         // x takes none, or no more
				next[j] && y.many(),              // y takes none, or no more
				reached[j+1] && y.many() && pair, // y takes it and stays
				next[j] && x.many() && pair:      // x takes it and stays
				next[j+1] = true
			default:
				next[j+1] = false
			}
		}
		reached, next = next, reached
	}
	return reached[len(b)]
}
