package command

import (
	"strings"
	"testing"
)

func TestTail(t *testing.T) {
	const secret = "the secret value"
	for name, test := range map[string]struct {
		writes []string
		want   string
	}{
		"nothing":            {nil, ""},
		"short":              {[]string{"one\n", "two\n"}, "one\ntwo"},
		"a secret":           {[]string{"a the secret", " value b"}, "a [secret] b"},
		"control characters": {[]string{"a\x1b[31mred\r\x07"}, "a[31mred"},
		"not UTF-8":          {[]string{"a\xffb"}, "a�b"},
		"short values stay":  {[]string{"x=abc"}, "x=abc"},
		"quoted":             {[]string{`"q\"uoted"`}, `"[secret]"`},
		"long":               {[]string{strings.Repeat("x", 3*stderrBytes)}, strings.Repeat("x", stderrBytes)},
		"in pieces":          {[]string{strings.Repeat("x", stderrBytes), strings.Repeat("y", stderrBytes)}, strings.Repeat("y", stderrBytes)},
	} {
		t.Run(name, func(t *testing.T) {
			tail := newTail(newSecrets([]string{secret, "abc", `q"uoted`, ""}))
			for _, w := range test.writes {
				if n, err := tail.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			if got := tail.String(); got != test.want {
				t.Errorf("%d bytes %.100q, want %.100q", len(got), got, test.want)
			}
		})
	}
}

// TestTailCutsNoSecret: wherever the kept part begins, no piece of a secret is left
// at its head.
func TestTailCutsNoSecret(t *testing.T) {
	const secret = "0123456789"
	for before := range 3 * len(secret) {
		tail := newTail(newSecrets([]string{secret}))
		_, _ = tail.Write([]byte(strings.Repeat("x", 100+before)))
		for range (stderrBytes + 200) / len(secret) {
			_, _ = tail.Write([]byte(secret))
		}
		if got := strings.ReplaceAll(tail.String(), "[secret]", ""); strings.ContainsAny(got, secret) {
			t.Fatalf("%d before: %.100q", before, got)
		}
	}
}
