package program

import (
	"bytes"
	"testing"
)

func TestTail(t *testing.T) {
	for name, test := range map[string]struct {
		writes []string
		want   string
		cut    bool
	}{
		"nothing":          {nil, "", false},
		"as much as fits":  {[]string{"ab", "cd"}, "abcd", false},
		"more":             {[]string{"ab", "cde"}, "bcde", true},
		"much more":        {[]string{"ab", "cdefghi"}, "fghi", true},
		"more, bit by bit": {[]string{"abcd", "e", "f"}, "cdef", true},
	} {
		t.Run(name, func(t *testing.T) {
			tail := Tail{Max: 4}
			for _, s := range test.writes {
				if n, err := tail.Write([]byte(s)); n != len(s) || err != nil {
					t.Errorf("%d, %v", n, err)
				}
			}
			kept, cut := tail.Bytes()
			if string(kept) != test.want || tail.String() != test.want || cut != test.cut {
				t.Errorf("%q, %t, want %q, %t", kept, cut, test.want, test.cut)
			}
		})
	}
}

// What is held is little, however much is written at once.
func TestTailHoldsLittle(t *testing.T) {
	tail := Tail{Max: 1 << 10}
	for range 10 {
		if _, err := tail.Write(bytes.Repeat([]byte("early "), 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	if held := cap(tail.data); held > 4*tail.Max {
		t.Errorf("%d bytes are held for %d", held, tail.Max)
	}
}

func TestTailLine(t *testing.T) {
	tail := Tail{Max: 100}
	if _, err := tail.Write([]byte(" it failed:\n\tno room\n")); err != nil {
		t.Fatal(err)
	}
	if got, want := tail.Line(), "it failed: no room"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
