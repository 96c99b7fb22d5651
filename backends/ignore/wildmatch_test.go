package ignore

import (
	"strings"
	"testing"
)

func TestWildmatch(t *testing.T) {
	// Rows of git's t3070, in its words: pathname matching, then plain.
	for _, row := range []struct {
		text, pattern   string
		pathname, plain bool
	}{
		{"foo", "foo", true, true},
		{"foo", "???", true, true},
		{"foo", "??", false, false},
		{"foo", "*", true, true},
		{"foobar", "*ob*a*r*", true, true},
		{"aaaaaaabababab", "*ab", true, true},
		{"foo*", `foo\*`, true, true},
		{`f\oo`, `f\\oo`, true, true},
		{"ball", "*[al]?", true, true},
		{"ten", "[ten]", false, false},
		{"ten", "**[!te]", true, true},
		{"ten", "**[!ten]", false, false},
		{"ton", "t[a-g]n", false, false},
		{"ton", "t[!a-g]n", true, true},
		{"ton", "t[^a-g]n", true, true},
		{"a]b", "a[]]b", true, true},
		{"a-b", "a[]-]b", true, true},
		{"]", "]", true, true},
		{"foo/baz/bar", "foo*bar", false, true},
		{"foo/baz/bar", "foo**bar", false, true},
		{"foobazbar", "foo**bar", true, true},
		{"foo/baz/bar", "foo/**/bar", true, true},
		{"foo/bar", "foo/**/bar", true, false},
		{"foo/b/a/z/bar", "foo/**/bar", true, true},
		{"foo/bar", "foo?bar", false, true},
		{"foo/bar", "foo[/]bar", false, true},
		{"foo/bar", "foo[^a-z]bar", false, true},
		{"foo/bar", "f[^eiu][^eiu][^eiu][^eiu][^eiu]r", false, true},
		{"foo", "**/foo", true, false},
		{"XXX/foo", "**/foo", true, true},
		{"bar/baz/foo", "*/foo", false, true},
		{"deep/foo/bar/baz", "**/bar/*", true, true},
		{"deep/foo/bar", "**/bar/*", false, false},
		{"foo/bar/baz", "**/bar**", false, true},
		{"a1B", "[[:alpha:]][[:digit:]][[:upper:]]", true, true},
		{"a", "[[:digit:][:upper:][:space:]]", false, false},
		{".", "[[:digit:][:punct:]]", true, true},
		{"5", "[[:xdigit:]]", true, true},
		{"a", "[[:nosuch:]]", false, false},
		{"[ab]", "[[]ab]", true, true},
		{"[ab]", "[[:]ab]", true, true},
		{"-", "[--A]", true, true},
		{"5", "[,-.]", false, false},
		{`\`, `[\\]`, true, true},
		{"G", `[A-\\]`, true, true},
		{"aaabbb", "b*a", false, false},
		{"", "", true, true},
		{"foo", "", false, false},
		{"foo", `foo\`, false, false},
		{"a[b", "a[b", false, false},
	} {
		if got := wildmatch(row.pattern, row.text, true); got != row.pathname {
			t.Errorf("wildmatch(%q, %q, pathname) = %v", row.pattern, row.text, got)
		}
		if got := wildmatch(row.pattern, row.text, false); got != row.plain {
			t.Errorf("wildmatch(%q, %q, plain) = %v", row.pattern, row.text, got)
		}
	}
}

func TestWildmatchIsNotExponential(t *testing.T) {
	// Git before 2.41 needs minutes for this one.
	if wildmatch(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 200), true) {
		t.Error("it matches")
	}
	if wildmatch(strings.Repeat("*a", 40)+"b", strings.Repeat("a", 200), false) {
		t.Error("it matches")
	}
}
