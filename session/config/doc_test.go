package config

import (
	"os"
	"strings"
	"testing"
)

// The examples of the documentation are configurations.
func TestDocumentedExamples(t *testing.T) {
	for _, name := range []string{"CONFIG.md", "../../README.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		examples := strings.Split(string(text), "```jsonc\n")[1:]
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, e := range examples {
			e, _, _ = strings.Cut(e, "```")
			if _, err := Parse(name, []byte(e)); err != nil {
				t.Errorf("%v in the example\n%s", err, e)
			}
		}
	}
}
