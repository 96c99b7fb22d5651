package search

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bmatcuk/doublestar/v4"
)

// TestGlobAgainstRipgrep compares the files of generated trees with those that
// ripgrep would search, by many patterns, each of which only sorts out.
func TestGlobAgainstRipgrep(t *testing.T) {
	rg := oracle(t, "rg")
	patterns := []string{
		"**", "*", "**/*", "*/*", "*/**", "**/*.go", "*.go", "*.{go,o}", "**/*.{go,o}", "**/[a-f]*", "?*", "**/x*", "*/*.go", "**/build/**", "*/../*",
		"**/*o*/**", "[!a]*/**/*", "**/**/*.go", "{a,b,*}/*",
	}
	for seed := range uint64(6) {
		dir := t.TempDir()
		g := generator{rand.New(rand.NewPCG(seed, 5)), true}
		g.fill(t, dir)
		write(t, filepath.Join(dir, ".ignore"), g.rules())
		cmd := exec.CommandContext(t.Context(), rg, "--no-config", "--files", "--hidden", "--no-ignore-global", "--no-ignore-parent", "--no-require-git",
			"--null", "-g", "!.git")
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("rg: %v", err)
		}
		all := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
		root := open(t, dir)
		for _, p := range patterns {
			var want []string
			for _, f := range all {
				if ok, err := doublestar.Match(p, f); err != nil {
					t.Fatal(err)
				} else if ok {
					want = append(want, f)
				}
			}
			slices.Sort(want)
			got, unreadable, err := Glob(t.Context(), root, ".", p)
			if err != nil || unreadable != 0 || !slices.Equal(got, want) {
				t.Errorf("seed %d, %q: %v, %d\nonly here: %q\nonly ripgrep: %q", seed, p, err, unreadable, minus(got, want), minus(want, got))
			}
		}
	}
}
