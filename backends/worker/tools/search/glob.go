package search

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// Globs select files. A glob that begins with "!" leaves out what it matches.
type Globs []glob

type glob struct {
	pattern string
	negated bool
	name    bool   // compared with the name only
	suffix  string // a glob that is "*" and this
}

// NewGlobs checks glob patterns: "*", "?", "[a-z]", "{a,b}", and "**" for any
// number of directories.
func NewGlobs(patterns []string) (Globs, error) {
	var out Globs
	for _, p := range patterns {
		g := glob{}
		g.pattern, g.negated = strings.CutPrefix(p, "!")
		if !doublestar.ValidatePattern(g.pattern) || g.pattern == "" {
			return nil, fmt.Errorf("the glob %q is not valid", p)
		}
		g.name = !strings.Contains(g.pattern, "/")
		g.pattern = strings.TrimPrefix(g.pattern, "/")
		if s, ok := strings.CutPrefix(g.pattern, "*"); ok && g.name && !strings.ContainsAny(s, `*?[{\`) {
			g.suffix = s
		}
		out = append(out, g)
	}
	return out, nil
}

// keeper returns what walkOptions.keep asks, nil for no globs.
func (g Globs) keeper(base string) func(p, name string) bool {
	if len(g) == 0 {
		return nil
	}
	wanted := slices.ContainsFunc(g, func(g glob) bool { return !g.negated })
	return func(p, name string) bool {
		keep := !wanted
		for i := range g {
			if keep == g[i].negated && g[i].match(base, p, name) {
				keep = !keep
			}
		}
		return keep
	}
}

func (g *glob) match(base, p, name string) bool {
	switch {
	case g.suffix != "":
		return strings.HasSuffix(name, g.suffix)
	case g.name:
		return doublestar.MatchUnvalidated(g.pattern, name)
	default:
		return doublestar.MatchUnvalidated(g.pattern, below(base, p))
	}
}

// Glob returns the regular files under base, a directory relative to the root,
// whose path below base matches a doublestar pattern, sorted. Ignored files
// are left out, but base may be ignored itself.
func Glob(ctx context.Context, root *workspace.Root, base, pattern string) (paths []string, unreadable int64, err error) {
	depth := -1
	if !strings.Contains(pattern, "**") && !strings.Contains(pattern, "{") {
		depth = strings.Count(pattern, "/")
	}
	found := make([][]string, workers())
	unreadable, err = walkFiles(ctx, root, base, walkOptions{
		depth: depth,
		keep:  func(p, _ string) bool { return doublestar.MatchUnvalidated(pattern, below(base, p)) },
		visit: func(worker int, f *file) error {
			if found[worker] = append(found[worker], f.path); len(found[worker]) > maxFiles {
				return ErrTooMany
			}
			return nil
		},
	})
	paths = slices.Concat(found...)
	if err == nil && len(paths) > maxFiles {
		err = ErrTooMany
	}
	slices.Sort(paths)
	return paths, unreadable, err
}

// SplitGlob splits a pattern into the directory that it names plainly and the
// rest, and checks it.
func SplitGlob(pattern string) (base, rest string, err error) {
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return "", "", fmt.Errorf("the glob %q is not valid", pattern)
	}
	base, rest = doublestar.SplitPattern(path.Clean(pattern))
	return base, rest, nil
}
