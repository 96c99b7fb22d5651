package search

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestIgnoreAgainstGit walks generated trees with generated ignore files and
// compares what is left with what git check-ignore leaves.
func TestIgnoreAgainstGit(t *testing.T) {
	git := oracle(t, "git")
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			generator{rand.New(rand.NewPCG(seed, 1)), false}.fill(t, dir)
			run(t, dir, git, "init", "-q")
			g := generator{rand.New(rand.NewPCG(seed, 2)), false}
			write(t, filepath.Join(dir, ".git/info/exclude"), g.rules())

			var all []string
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == ".git" {
					return filepath.SkipDir
				}
				if err == nil && d.Type().IsRegular() {
					rel, _ := filepath.Rel(dir, p)
					all = append(all, rel)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), git, "check-ignore", "--stdin", "-z", "--no-index")
			cmd.Dir = dir
			cmd.Env = gitEnv(dir)
			cmd.Stdin = strings.NewReader(strings.Join(all, "\x00") + "\x00")
			out, err := cmd.Output()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				t.Fatalf("git check-ignore: %v", err)
			}
			ignored := map[string]bool{}
			for p := range bytes.SplitSeq(out, []byte{0}) {
				ignored[string(p)] = true
			}
			var want []string
			for _, p := range all {
				if !ignored[p] {
					want = append(want, p)
				}
			}
			slices.Sort(want)
			got, _, err := Glob(t.Context(), open(t, dir), ".", "**")
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) {
				t.Errorf("left of %d files\nonly here: %q\nonly git:  %q\n%s", len(all), minus(got, want), minus(want, got), dump(dir))
			}
		})
	}
}

func minus(a, b []string) (out []string) {
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// dump shows every ignore file of a tree.
func dump(dir string) string {
	var b strings.Builder
	filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && (d.Name() == ".gitignore" || d.Name() == "exclude") {
			content, _ := os.ReadFile(p)
			fmt.Fprintf(&b, "%s:\n%q\n", strings.TrimPrefix(p, dir), content)
		}
		return nil
	})
	return b.String()
}

func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	cmd.Env = gitEnv(dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// gitEnv keeps the settings of whoever runs the tests out of them.
func gitEnv(dir string) []string {
	return append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull,
		"GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
}

// generator makes names and ignore patterns that often meet. A tame one keeps
// to patterns that git and ripgrep understand alike.
type generator struct {
	*rand.Rand
	tame bool
}

func (g generator) pick(from ...string) string { return from[g.IntN(len(from))] }

func (g generator) name() string {
	return g.pick("a", "b", "ab", "foo", "bar", "foobar", "a.o", "b.o", "x.go", "foo.go", "build", "doc", "a b", "a ", "#c", "!d", "[e]", `f\g`, "é", ".hidden", "ba*r")
}

func (g generator) glob() string {
	switch g.IntN(12) {
	case 0:
		return "*"
	case 1:
		return "*.o"
	case 2:
		return "*.go"
	case 3:
		return "foo*"
	case 4:
		return "*b*"
	case 5:
		return "?"
	case 6:
		return g.pick("[ab]", "[!a]", "[^f]*", "[a-c]?", "[[:alpha:]]", "[]e]*", `[\]]`, "a[", "[a", `\#c`, `\!d`, `a\ `, `f\\g`, `ba\*r`, "**", "a**", "**b", "***")
	default:
		return g.name()
	}
}

func (g generator) rules() string {
	var b strings.Builder
	if g.tame {
		for range g.IntN(4) {
			b.WriteString(g.pick("", "", "!", "/", "**/") + g.pick("*.o", "*.go", "foo*", "a", "b", "doc", "build", "foo.go", "[ab]", "?") + g.pick("", "", "/", "/*.o", "/**/a") + "\n")
		}
		return b.String()
	}
	if g.IntN(10) == 0 {
		b.WriteString("\ufeff")
	}
	for range g.IntN(6) {
		switch g.IntN(10) {
		case 0:
			b.WriteString("# a comment\n")
			continue
		case 1:
			b.WriteString(g.pick("\n", "   \n", "/\n", "!\n", "//\n", "\\\n"))
			continue
		}
		if g.IntN(4) == 0 {
			b.WriteByte('!')
		}
		if g.IntN(4) == 0 {
			b.WriteByte('/')
		}
		if g.IntN(6) == 0 {
			b.WriteString("**/")
		}
		b.WriteString(g.glob())
		for g.IntN(4) == 0 {
			b.WriteString(g.pick("/", "/", "/", "/**/", "//") + g.glob())
		}
		b.WriteString(g.pick("", "", "", "/", "/*", "/**", " ", "  ", `\ `))
		b.WriteString(g.pick("\n", "\n", "\n", "\r\n", ""))
		if !strings.HasSuffix(b.String(), "\n") && g.IntN(2) == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// fill fills a directory with files, directories and ignore files.
func (g generator) fill(t testing.TB, dir string) { g.fillTo(t, dir, 0) }

func (g generator) fillTo(t testing.TB, dir string, depth int) {
	if g.IntN(3) > 0 {
		write(t, filepath.Join(dir, ".gitignore"), g.rules())
	}
	for range 4 + g.IntN(5) {
		p := filepath.Join(dir, g.name())
		if _, err := os.Lstat(p); err == nil {
			continue
		}
		if depth < 3 && g.IntN(2) == 0 {
			if err := os.Mkdir(p, 0o755); err != nil {
				t.Fatal(err)
			}
			g.fillTo(t, p, depth+1)
		} else {
			write(t, p, "line of "+g.name()+"\nfoo bar\n")
		}
	}
}
