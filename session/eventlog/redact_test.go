package eventlog

import "testing"

// The file that an error is about is left out of its text, and no part of another word is.
func TestWithoutGiven(t *testing.T) {
	for _, c := range []struct{ text, about, want string }{
		{"the data cannot be read", "a", "the data cannot be read"},
		{"the data of dat cannot be read, dat", "dat", "the data of … cannot be read, …"},
		{"/work/src/a.txt: no such file; 'src/a.txt'", "src/a.txt", "/work/…: no such file; '…'"},
		{"src/a.txts, xsrc/a.txt, src/a.txt.", "src/a.txt", "src/a.txts, xsrc/a.txt, …."},
		{"in dir/file", "dir/", "in …file"},
		{"daten für fürs, für", "für", "daten … fürs, …"},
		{"\xff\xff and a\xff\xffb", "\xff\xff", "… and a…b"},
		{`input "a" is data`, "a", `input "…" is data`},
		{"aaa aa", "aa", "aaa …"},
		{"all of it", "", "all of it"},
	} {
		if got := withoutGiven(c.text, c.about); got != c.want {
			t.Errorf("%q without %q is %q, want %q", c.text, c.about, got, c.want)
		}
	}
}
