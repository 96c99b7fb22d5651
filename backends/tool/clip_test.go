package tool

import "testing"

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""},
		{"short", 5, "short"},
		{"longer", 5, "longe…"},
		{"Größe", 3, "Gr…"},
		{"Größe", 4, "Grö…"},
		{"日本語", 8, "日本…"},
		{"any\xff", 4, "any\xff"},
		{"any\xff and more", 8, "any and…"},
	} {
		if got := Clip(c.text, c.most); got != c.want {
			t.Errorf("%q in %d bytes: %q, not %q", c.text, c.most, got, c.want)
		}
	}
}
