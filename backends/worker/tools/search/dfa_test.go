package search

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLinesAgainstRegexp compares the matching lines of generated texts with
// what package regexp says of each line, for each way of finding them.
func TestLinesAgainstRegexp(t *testing.T) {
	piece := rapid.SampledFrom([]string{"a", "b", "ab", ".", "[ab]", "[^a]", `\w`, `\W`, `\s`, `\d+`, "é", "[à-ü]", "(?i)k", "(?i)ſa", "(a|bc)", "(|a)", "x?", "a*", "b+", "a{2,3}", "^", "$", `\b`, `\B`, `\A`, `\z`, "\u212a", "\ufffd", "(?i:Ab é)"})
	word := rapid.SampledFrom([]string{"a", "b", "c", "ab", "bc", " ", "\n", "\n\n", "é", "É", "k", "K", "\u212a", "s", "ſ", "S", "\xff", "\ufffd", "1", "_", "\r\n", "x", "a\x80"})
	rapid.Check(t, func(t *rapid.T) {
		pattern := strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pattern"), "")
		ignoreCase := rapid.Bool().Draw(t, "ignoreCase")
		text := []byte(strings.Join(rapid.SliceOfN(word, 0, 30).Draw(t, "text"), ""))
		m, err := NewMatcher(pattern, ignoreCase)
		if err != nil {
			t.Fatal(err)
		}
		source := "(?m)" + strings.ReplaceAll(pattern, "$", `(?:\r?$)`)
		if ignoreCase {
			source = strings.Replace(source, "m", "mi", 1)
		}
		re := regexp.MustCompile(source)
		var want []string
		for line := range bytes.Lines(text) {
			if line = bytes.TrimSuffix(line, newline); re.Match(line) {
				want = append(want, string(line))
			}
		}
		unfiltered := *m
		unfiltered.filter, unfiltered.exact = nil, false
		for name, try := range map[string]*Matcher{"filtered": m, "by the automaton": &unfiltered} {
			for _, usable := range []bool{true, false} {
				var s scanner
				if !usable {
					s.automaton(try).forgets = maxForgets + 1
				}
				var got []string
				try.lines(&s, text, 0, func(start, end int) bool {
					got = append(got, string(text[start:end]))
					return true
				})
				if !slices.Equal(got, want) {
					t.Fatalf("%s (automaton %v), %q in %q: got %q, want %q", name, usable, source, text, got, want)
				}
			}
		}
	})
}

// TestAutomatonIsBounded runs an expression that has a state for every
// combination of twenty bytes.
func TestAutomatonIsBounded(t *testing.T) {
	m, err := NewMatcher("[ab][ab]{12}c.{9}[ab]$|a.{14}$", false)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	var text bytes.Buffer
	for range 20_000 {
		for range 20 + r.IntN(20) {
			text.WriteByte("abc"[r.IntN(3)])
		}
		text.WriteByte('\n')
	}
	var s scanner
	n := 0
	m.lines(&s, text.Bytes(), 0, func(int, int) bool { n++; return true })
	want := 0
	for line := range bytes.Lines(text.Bytes()) {
		if m.re.Match(bytes.TrimSuffix(line, newline)) {
			want++
		}
	}
	if n != want || n == 0 {
		t.Errorf("%d lines, want %d", n, want)
	}
	if s.dfa.usable() || len(s.dfa.states) > maxStates {
		t.Errorf("%d states after %d rounds", len(s.dfa.states), s.dfa.forgets)
	}
}

func TestPrefilter(t *testing.T) {
	for pattern, want := range map[string]string{
		"needle":            "needle exact",
		"a(b|c)d":           "abd acd exact",
		"(foo|bar)baz.*":    "foobaz barbaz",
		`func \w+Root\(`:    "func ",
		"x+":                "x",
		"(ab)?longer":       "longer",
		"a|b*":              "",
		`\w+`:               "",
		"[ab]c":             "ac bc exact",
		"(?i)hello":         "hello/i exact",
		"(?i)task":          "ta/i",
		"(?i)k":             "",
		"^needle$":          "needle",
		"a|b|c|d|e|f|g|h|i": "",
	} {
		m, err := NewMatcher(pattern, false)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		if m.filter != nil {
			for _, n := range m.filter.needles {
				s := string(n.text)
				if n.fold {
					s += "/i"
				}
				got = append(got, s)
			}
		}
		if m.exact {
			got = append(got, "exact")
		}
		if got := strings.Join(got, " "); got != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
