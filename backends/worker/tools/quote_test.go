package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzQuoted(f *testing.F) {
	for i := range 0x80 {
		f.Add(strings.Repeat("ä", i%9) + string(rune(i)) + strings.Repeat("x", i%11) + `"`)
	}
	f.Add("\u2028 \ufffd \U0010ffff \x7f <>&")
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		got := quoted([]byte("before"), []byte(text))
		var back string
		if err := json.Unmarshal(got[len("before"):], &back); err != nil || back != text {
			t.Errorf("%q is %s, which reads as %q, %v", text, got, back, err)
		}
	})
}
