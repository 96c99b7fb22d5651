package search

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkGrep searches a source tree, by default Go's own, beside ripgrep.
// SEARCH_TREE names another one.
func BenchmarkGrep(b *testing.B) {
	dir := os.Getenv("SEARCH_TREE")
	if dir == "" {
		out, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			b.Fatal(err)
		}
		dir = filepath.Join(strings.TrimSpace(string(out)), "src")
	}
	root := open(b, dir)
	rg, rgErr := exec.LookPath("rg")
	for _, row := range []struct {
		name, pattern string
		ignoreCase    bool
	}{
		{"rare", "errPathEscapes", false},
		{"frequent", "return nil", false},
		{"ignoreCase", "errpathescapes", true},
		{"alternatives", "errPathEscapes|doInRoot|kindOpenFile", false},
		{"innerLiteral", `func \w+Root\(`, false},
		{"noLiteral", `\w{3,}\s+\d{5,}`, false},
	} {
		b.Run(row.name+"/caisson", func(b *testing.B) {
			for b.Loop() {
				q := everything(b, row.pattern, row.ignoreCase)
				q.Mode = Count
				if _, err := Grep(b.Context(), root, q); err != nil {
					b.Fatal(err)
				}
			}
		})
		if rgErr != nil {
			continue
		}
		b.Run(row.name+"/ripgrep", func(b *testing.B) {
			args := []string{"--no-config", "--hidden", "-c", "-e", row.pattern}
			if row.ignoreCase {
				args = append(args, "-i")
			}
			for b.Loop() {
				cmd := exec.CommandContext(b.Context(), rg, append(args, dir)...)
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
