package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/wide"
)

// everything is a query for all results.
func everything(t testing.TB, pattern string, ignoreCase bool) Query {
	t.Helper()
	m, err := NewMatcher(pattern, ignoreCase)
	if err != nil {
		t.Fatal(err)
	}
	return Query{Matcher: m, Base: ".", Limit: 1 << 30, MaxBytes: 1 << 30}
}

// format writes lines as ripgrep does, which sorts directory by directory.
func format(f Found, context bool) string {
	var b strings.Builder
	slices.SortStableFunc(f.Lines, func(a, b Line) int {
		return slices.Compare(strings.Split(a.Path, "/"), strings.Split(b.Path, "/"))
	})
	for i, l := range f.Lines {
		sep := byte(':')
		if l.Context {
			sep = '-'
		}
		if i > 0 && (f.Lines[i-1].Path != l.Path || f.Lines[i-1].Number+1 != l.Number) && context {
			b.WriteString("--\n")
		}
		fmt.Fprintf(&b, "%s%c%d%c%s\n", l.Path, sep, l.Number, sep, l.Text)
	}
	return b.String()
}

// TestAgainstRipgrep searches generated trees and compares every line.
func TestAgainstRipgrep(t *testing.T) {
	rg := oracle(t, "rg")
	patterns := []struct {
		pattern    string
		ignoreCase bool
	}{
		{"foo", false}, {"foo bar", false}, {"FOO", true}, {"k", true}, {"task", true}, {"line$", false}, {"^line", false},
		{"^$", false}, {"", false}, {"of (foo|bar|a.o)", false}, {"(?i)of|bar", false}, {`\bfoo\b`, false}, {`\w+\.go`, false}, {"[fb]oo", false},
		{"[^a]b", false}, {`\s+bar`, false}, {"a{2,3}", false}, {"f.*r", false}, {"(foo)?bar", false}, {"é", false}, {"É", true},
		{`x\.(go|o)|build`, false}, {"(?s)foo.bar", false}, {`\Aline`, false}, {"nosuchthing", false}, {"l[io]ne of", false}, {"ſ", true}, {"straſe", true},
	}
	for seed := range uint64(2) {
		dir := t.TempDir()
		g := generator{rand.New(rand.NewPCG(seed, 3)), true}
		g.fill(t, dir)
		write(t, filepath.Join(dir, ".ignore"), g.rules())
		write(t, filepath.Join(dir, "lines"), g.lines())
		write(t, filepath.Join(dir, "sub/long.txt"), strings.Repeat(g.lines(), 200))
		write(t, filepath.Join(dir, "sub/late.bin"), "foo\x00bar\n")
		for i, e := range []wide.Encoding{wide.LittleEndian, wide.BigEndian} {
			text := g.lines() + strings.Repeat("\U0001f600 foo\r\n", i)
			write(t, filepath.Join(dir, "wide."+e.String()), string(e.Encode([]byte(text))))
			write(t, filepath.Join(dir, "sub/long."+e.String()), string(e.Encode([]byte(strings.Repeat(text, 50)))))
			write(t, filepath.Join(dir, "sub/unmarked."+e.String()), string(e.Encode([]byte(text))[wide.MarkSize:]))
			write(t, filepath.Join(dir, "sub/damaged."+e.String()), string(e.Encode([]byte("foo \xed\xa0\xbd bar\nfoo\n")))+"f")
			write(t, filepath.Join(dir, "sub/nul."+e.String()), string(e.Encode([]byte("foo\x00bar\nfoo\n"))))
			write(t, filepath.Join(dir, "sub/mark."+e.String()), string(e.Encode(nil)))
		}
		root := open(t, dir)
		for _, p := range patterns {
			for _, context := range []int{0, 2} {
				q := everything(t, p.pattern, p.ignoreCase)
				q.Before, q.After = context, context
				found, err := Grep(t.Context(), root, q)
				if err != nil {
					t.Fatal(err)
				}
				want := ripgrep(t, rg, dir, p.pattern, p.ignoreCase, context)
				if got := format(found, context > 0); got != want {
					t.Fatalf("seed %d, pattern %q, context %d: %s", seed, p.pattern, context, firstDifference(got, want))
				}
			}
		}
	}
}

func ripgrep(t *testing.T, rg, dir, pattern string, ignoreCase bool, context int) string {
	t.Helper()
	args := []string{"--no-config", "--hidden", "--no-ignore-global", "--no-ignore-parent", "--no-require-git", "--no-messages",
		"--sort=path", "--line-number", "--no-heading", "--with-filename", "-g", "!.git"}
	if ignoreCase {
		args = append(args, "-i")
	}
	if context > 0 {
		args = append(args, "-C", strconv.Itoa(context))
	}
	cmd := exec.CommandContext(t.Context(), rg, append(args, "-e", pattern)...)
	cmd.Dir = dir
	cmd.Stdin = nil
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		t.Fatalf("rg %q: %v", pattern, err)
	}
	return strings.ReplaceAll(string(out), "\r\n", "\n")
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(g), len(w)) {
		var a, b string
		if i < len(g) {
			a = g[i]
		}
		if i < len(w) {
			b = w[i]
		}
		if a != b {
			return fmt.Sprintf("output line %d of %d and %d\ngot  %q\nwant %q", i+1, len(g), len(w), a, b)
		}
	}
	return "the same"
}

func (g generator) lines() string {
	var b strings.Builder
	for range 40 {
		switch g.IntN(6) {
		case 0:
			b.WriteString("\n")
		case 1:
			b.WriteString("a line of " + g.name() + " and a Task\n")
		case 2:
			b.WriteString("foo  bar\taaa\n")
		case 3:
			b.WriteString("Foo BAR aab line\n")
		case 4:
			b.WriteString("STRASSE straſe \u212a É\n")
		default:
			b.WriteString(g.name() + "\n")
		}
	}
	b.WriteString(g.pick("no end", ""))
	return b.String()
}

func TestPages(t *testing.T) {
	files := map[string]string{}
	var all []string
	for i := range 30 {
		name := fmt.Sprintf("f%02d", i)
		var b strings.Builder
		for j := range i % 7 {
			fmt.Fprintf(&b, "nothing\nmatch %d\n", j)
			all = append(all, fmt.Sprintf("%s:%d:match %d", name, 2*j+2, j))
		}
		files[name] = b.String()
	}
	root := tree(t, files)
	for _, limit := range []int{1, 3, 7, 1000} {
		q := everything(t, "match", false)
		q.Limit = limit
		var got []string
		for {
			found, err := Grep(t.Context(), root, q)
			if err != nil {
				t.Fatal(err)
			}
			if found.Total != len(all) {
				t.Fatalf("total is %d, not %d", found.Total, len(all))
			}
			if found.Returned == 0 {
				break
			}
			if found.Returned > limit {
				t.Fatalf("%d results in a page of %d", found.Returned, limit)
			}
			for _, l := range found.Lines {
				got = append(got, fmt.Sprintf("%s:%d:%s", l.Path, l.Number, l.Text))
			}
			q.Offset += found.Returned
		}
		if !slices.Equal(got, all) {
			t.Errorf("pages of %d: %q", limit, got)
		}
	}
}

func TestModes(t *testing.T) {
	root := tree(t, map[string]string{
		"a.go": "x\nx\n", "b.go": "y\n", "sub/c.go": "x\n", "sub/d.txt": "x\n", "bin": "x\x00x\n",
		"late": strings.Repeat("y", 20000) + "\nx\n\x00\n",
	})
	for _, row := range []struct {
		name    string
		mode    Mode
		base    string
		include []string
		want    string
	}{
		{"files", Files, ".", nil, "a.go:1 sub/c.go:1 sub/d.txt:1"},
		{"count", Count, ".", nil, "a.go:2 sub/c.go:1 sub/d.txt:1"},
		{"by name", Count, ".", []string{"*.go"}, "a.go:2 sub/c.go:1"},
		{"by path", Count, ".", []string{"sub/*"}, "sub/c.go:1 sub/d.txt:1"},
		{"below base", Count, "sub", []string{"/c*"}, "sub/c.go:1"},
		{"not", Count, ".", []string{"!*.go"}, "sub/d.txt:1"},
		{"braces", Count, ".", []string{"*.{txt,md}"}, "sub/d.txt:1"},
		{"several", Count, ".", []string{"*.go", "!a*"}, "sub/c.go:1"},
		{"one file", Count, "sub/c.go", nil, "sub/c.go:1"},
	} {
		t.Run(row.name, func(t *testing.T) {
			q := everything(t, "x", false)
			globs, err := NewGlobs(row.include)
			if err != nil {
				t.Fatal(err)
			}
			q.Mode, q.Base, q.Include = row.mode, row.base, globs
			found, err := Grep(t.Context(), root, q)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found.Files {
				got = append(got, fmt.Sprintf("%s:%d", f.Path, f.Count))
			}
			if strings.Join(got, " ") != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

// The end of a line is where edits see it, whatever newlines the file has.
func TestCarriageReturns(t *testing.T) {
	root := tree(t, map[string]string{"f": "one;\r\n\r\ntwo;\nthree\r"})
	for pattern, want := range map[string]string{
		";$": "1:one; 3:two;", "^$": "2:", "e$": "4:three", "e;\\r$": "1:one;", "(?m:;$)": "1:one; 3:two;", "^[a-z;]+$": "1:one; 3:two; 4:three", `;\z`: "3:two;",
	} {
		found, err := Grep(t.Context(), root, everything(t, pattern, false))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range found.Lines {
			got = append(got, fmt.Sprintf("%d:%s", l.Number, l.Text))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", pattern, got, want)
		}
	}
}

// A search in one file does not pass over that file in silence.
func TestBinaryFile(t *testing.T) {
	root := tree(t, map[string]string{"bin": "x\x00x\n", "late": "x" + strings.Repeat("y", 20000) + "\n\x00\n"})
	for _, mode := range []Mode{Content, Files, Count} {
		for _, base := range []string{"bin", "late"} {
			q := everything(t, "x", false)
			q.Mode, q.Base = mode, base
			if found, err := Grep(t.Context(), root, q); !errors.Is(err, ErrBinary) {
				t.Errorf("mode %d, %s: %+v, %v", mode, base, found, err)
			}
		}
	}
}

func TestLongLines(t *testing.T) {
	long := strings.Repeat("é", 300_000) + "needle" + strings.Repeat("x", 3*maxLine)
	root := tree(t, map[string]string{"min.js": "first\n" + long + "\nneedle\n"})
	found, err := Grep(t.Context(), root, everything(t, "needle", false))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Lines) != 2 || found.Lines[0].Number != 2 {
		t.Fatalf("found %+v", found)
	}
	if s := found.Lines[0].Text; !strings.Contains(s, "needle") || len(s) > maxShown+6 || !strings.HasPrefix(s, "…é") || !strings.HasSuffix(s, "…") {
		t.Errorf("%d bytes: %.40q", len(s), s)
	}
}

func TestMaxBytesEndsThePage(t *testing.T) {
	root := tree(t, map[string]string{"f": strings.Repeat("0123456789\n", 100)})
	q := everything(t, "5", false)
	q.MaxBytes = 95
	found, err := Grep(t.Context(), root, q)
	if err != nil || found.Returned != 10 || found.Total != 100 {
		t.Errorf("%d of %d lines, %v", found.Returned, found.Total, err)
	}
}

func TestBasesAndLinks(t *testing.T) {
	outside := t.TempDir()
	write(t, filepath.Join(outside, "secret"), "x\n")
	root := tree(t, map[string]string{".gitignore": "node_modules/\n*.log\n", "node_modules/m/a.js": "x\n", "node_modules/m/a.log": "x\n", "b.js": "x\n"})
	for link, target := range map[string]string{"out": outside, "file": "b.js", "loop": ".", "secret": filepath.Join(outside, "secret")} {
		if err := os.Symlink(target, filepath.Join(root.Dir(), link)); err != nil {
			t.Fatal(err)
		}
	}
	for base, want := range map[string]string{
		".":                   "b.js",
		"node_modules":        "node_modules/m/a.js",
		"node_modules/m":      "node_modules/m/a.js",
		"file":                "file",
		"node_modules/m/a.js": "node_modules/m/a.js",
	} {
		q := everything(t, "x", false)
		q.Mode, q.Base = Files, base
		found, err := Grep(t.Context(), root, q)
		if err != nil || len(found.Files) != 1 || found.Files[0].Path != want {
			t.Errorf("below %s: %+v, %v", base, found.Files, err)
		}
	}
	for _, base := range []string{"out", "secret"} {
		q := everything(t, "x", false)
		q.Base = base
		if _, err := Grep(t.Context(), root, q); tool.KindOf(err) != tool.PathOutsideRoot {
			t.Errorf("below %s: %v", base, err)
		}
	}
}

func TestNestedRepository(t *testing.T) {
	root := tree(t, map[string]string{
		".gitignore": "*.log\n", ".ignore": "*.tmp\n!kept.log\n", "a.log": "", "kept.log": "", "a.tmp": "",
		"inner/.git/HEAD": "ref", "inner/.git/info/exclude": "*.o\n", "inner/a.log": "", "inner/a.o": "", "inner/a.tmp": "",
		"tree/.git": "gitdir: elsewhere", "tree/a.log": "",
	})
	got, _, err := Glob(t.Context(), root, ".", "**/*.{log,tmp,o}")
	if want := []string{"inner/a.log", "kept.log", "tree/a.log"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestGlob(t *testing.T) {
	root := tree(t, map[string]string{"a.go": "", "a_test.go": "", ".hidden/x.go": "", "sub/b.go": "", "sub/deep/c.go": "", "sub/n\nl.go": "", "sub/\xff.go": ""})
	for _, row := range []struct{ base, pattern, want string }{
		{".", "*.go", "a.go a_test.go"},
		{".", "**/*.go", ".hidden/x.go a.go a_test.go sub/b.go sub/deep/c.go sub/n\nl.go sub/\xff.go"},
		{".", "sub/*.go", "sub/b.go sub/n\nl.go sub/\xff.go"},
		{"sub", "**/[bc].go", "sub/b.go sub/deep/c.go"},
		{".", "{a,sub/b}.go", "a.go sub/b.go"},
		{".", "*/*/*.go", "sub/deep/c.go"},
		{".", "nothing*", ""},
	} {
		got, _, err := Glob(t.Context(), root, row.base, row.pattern)
		if err != nil || strings.Join(got, " ") != row.want {
			t.Errorf("%s below %s: %q, %v", row.pattern, row.base, got, err)
		}
	}
}

func TestSplitGlob(t *testing.T) {
	for pattern, want := range map[string][2]string{
		"*.go": {".", "*.go"}, "a/b/*.go": {"a/b", "*.go"}, "./a/**": {"a", "**"}, "a/b": {"a", "b"}, "../*": {"..", "*"}, "/abs/*": {"/abs", "*"},
	} {
		base, rest, err := SplitGlob(pattern)
		if err != nil || base != want[0] || rest != want[1] {
			t.Errorf("%s: %q %q %v", pattern, base, rest, err)
		}
	}
	for _, pattern := range []string{"", "[a", "{a"} {
		if _, _, err := SplitGlob(pattern); err == nil {
			t.Errorf("%q is taken", pattern)
		}
	}
}

func TestCancelled(t *testing.T) {
	root := tree(t, map[string]string{"a": "x\n", "sub/b": "x\n"})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("why")
	cancel(why)
	if _, err := Grep(ctx, root, everything(t, "x", false)); !errors.Is(err, why) {
		t.Errorf("Grep: %v", err)
	}
	if _, _, err := Glob(ctx, root, ".", "**"); !errors.Is(err, why) {
		t.Errorf("Glob: %v", err)
	}
}

func TestBadPatterns(t *testing.T) {
	for _, pattern := range []string{"(", `\1`, "a\nb", `\n`, "(?=x)", strings.Repeat("a", MaxPattern+1)} {
		if _, err := NewMatcher(pattern, false); err == nil {
			t.Errorf("%.20q is taken", pattern)
		}
	}
}
