package search

import "bytes"

// prefilter finds where one of a few texts occurs.
type prefilter struct{ needles []needle }

// needle is one text. A folded one is found by its rarest byte in either case.
type needle struct {
	text         []byte
	fold         bool
	at           int  // offset of the anchor in a folded text
	lower, upper byte // the anchor
}

func makePrefilter(set []text) *prefilter {
	f := &prefilter{}
	for _, t := range set {
		n := needle{text: []byte(t.bytes), fold: t.fold}
		if t.fold {
			for i := range n.text {
				if rarity(n.text[i]) < rarity(n.text[n.at]) {
					n.at = i
				}
			}
			n.lower = n.text[n.at]
			if n.upper = n.lower; 'a' <= n.lower && n.lower <= 'z' {
				n.upper = n.lower - 'a' + 'A'
			}
		}
		f.needles = append(f.needles, n)
	}
	return f
}

// rarity orders bytes by how often they stand in source text, rarest first.
func rarity(c byte) int {
	const frequent = "zqjxvwbykg_mhfupdclosanirte"
	if i := bytes.IndexByte([]byte(frequent), c); i >= 0 {
		return i + 1
	}
	switch c {
	case ' ', '\t':
		return len(frequent) + 1
	}
	return 0
}

// finder runs a prefilter over one buffer. It remembers where each text comes
// next, so that a rare one is looked for once and not after every frequent one.
type finder struct {
	buffer []byte
	next   [maxTexts]hit
	needle []needle
}

type hit struct {
	at           int // where the text begins; -1 when it does not occur again
	lower, upper int // where the anchor's two cases come next, -1 never
}

func (f *prefilter) start(buffer []byte) finder {
	s := finder{buffer: buffer, needle: f.needles}
	for i := range f.needles {
		s.next[i] = hit{at: -2, lower: -2, upper: -2} // not looked for yet
	}
	return s
}

// find returns where the first text at or after from begins, or -1.
func (s *finder) find(from int) int {
	first := -1
	for i := range s.needle {
		n, h := &s.needle[i], &s.next[i]
		if h.at == -2 || h.at >= 0 && h.at < from {
			if n.fold {
				n.findFolded(s.buffer, from, h)
			} else if h.at = bytes.Index(s.buffer[from:], n.text); h.at >= 0 {
				h.at += from
			}
		}
		if h.at >= 0 && (first < 0 || h.at < first) {
			first = h.at
		}
	}
	return first
}

// findFolded sets h.at to where the text occurs next in any case.
func (n *needle) findFolded(buffer []byte, from int, h *hit) {
	for from += n.at; ; from++ {
		h.lower = nextByte(buffer, n.lower, from, h.lower)
		if n.upper == n.lower {
			h.upper = h.lower
		} else {
			h.upper = nextByte(buffer, n.upper, from, h.upper)
		}
		anchor := h.lower
		if anchor < 0 || h.upper >= 0 && h.upper < anchor {
			anchor = h.upper
		}
		if anchor < 0 {
			h.at = -1
			return
		}
		if start := anchor - n.at; start+len(n.text) <= len(buffer) && equalFold(buffer[start:start+len(n.text)], n.text) {
			h.at = start
			return
		}
		from = anchor
	}
}

// nextByte returns where c stands at or after from, given what was found for
// an earlier from.
func nextByte(buffer []byte, c byte, from, known int) int {
	if known == -1 || known >= from {
		return known
	}
	if from >= len(buffer) {
		return -1
	}
	if i := bytes.IndexByte(buffer[from:], c); i >= 0 {
		return from + i
	}
	return -1
}

// equalFold compares ASCII text with lower-case text.
func equalFold(b, lower []byte) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}
