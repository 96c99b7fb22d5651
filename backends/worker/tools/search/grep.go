package search

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

const (
	// maxFiles bounds the files that one search may find, as their names are
	// kept to be sorted.
	maxFiles = 250_000
	// MaxContext is the most lines around a match that can be asked for.
	MaxContext = 100
	// maxShown is how many bytes of a line are shown: a longer one is cut to
	// what surrounds the match.
	maxShown = 1000
)

// ErrTooMany is what a search gets that finds more files than it may list.
var ErrTooMany = errors.New("the search finds more than 250000 files")

// Mode is what a search returns.
type Mode int

// The modes.
const (
	Content Mode = iota // lines
	Files               // names of files with a match
	Count               // names, with the number of matching lines
)

// Query is what to look for and which page of it to return.
type Query struct {
	Matcher *Matcher
	// Base is the file or directory to search, relative to the root.
	Base string
	// Include are globs of the files to search; none means all. One without a
	// slash is compared with names, one with a slash with the path below Base.
	Include Globs
	// Skip is asked about a file that would be searched, and concurrently; nil
	// skips none.
	Skip func(path string) bool
	Mode Mode
	// Before and After are lines of context, at most [MaxContext] each.
	Before, After int
	// Offset and Limit select results: matching lines for Content, else files.
	Offset, Limit int
	// MaxBytes bounds the text of all lines together.
	MaxBytes int
}

// Found is one page of a search.
type Found struct {
	// Total counts all results and Matches all matching lines; in mode Files
	// the latter are not counted.
	Total, Matches int
	// Returned is how many results this page has: a page ends early when
	// MaxBytes is used up.
	Returned int
	Files    []FileCount
	Lines    []Line
	// Unreadable counts files and directories that could not be read.
	Unreadable int64
	// Skipped counts files that Query.Skip kept from being searched.
	Skipped int64
}

// FileCount is a file and how many of its lines match.
type FileCount struct {
	Path  string
	Count int
}

// Line is one line of a page.
type Line struct {
	Path   string
	Number int // 1-based
	Text   string
	// Context says that the line does not match itself.
	Context bool
}

// Grep searches files for lines. Results are sorted by path. Binary files are left
// out; when Base is one, Grep fails with [ErrBinary].
func Grep(ctx context.Context, root *workspace.Root, q Query) (Found, error) {
	var found Found
	hits, err := count(ctx, root, q, &found)
	if err != nil {
		return Found{}, err
	}
	slices.SortFunc(hits, func(a, b FileCount) int { return cmp.Compare(a.Path, b.Path) })
	found.Total = len(hits)
	for _, h := range hits {
		found.Matches += h.Count
	}
	if q.Mode != Content {
		from := min(q.Offset, len(hits))
		found.Files = hits[from:min(from+q.Limit, len(hits))]
		found.Returned = len(found.Files)
		if q.Mode == Files {
			found.Matches = 0
		}
		return found, nil
	}
	found.Total = found.Matches
	return found, lines(ctx, root, q, hits, &found)
}

// count finds the files with a match and counts their matching lines. It tells
// found what it had to leave out.
func count(ctx context.Context, root *workspace.Root, q Query, found *Found) ([]FileCount, error) {
	limit := math.MaxInt
	if q.Mode == Files {
		limit = 1
	}
	info, err := root.Stat(q.Base)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		f, _, err := root.Open(q.Base)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		n, err := q.Matcher.count(new(scanner), cancelled{ctx, f}, limit)
		if err != nil || n == 0 {
			return nil, err
		}
		return []FileCount{{q.Base, n}}, nil
	}
	type state struct {
		scanner    scanner
		hits       []FileCount
		unreadable int64
		skipped    int64
	}
	states := make([]state, workers())
	unreadable, err := walkFiles(ctx, root, q.Base, walkOptions{
		depth: -1,
		keep:  q.Include.keeper(q.Base),
		visit: func(worker int, f *file) error {
			s := &states[worker]
			if q.Skip != nil && q.Skip(f.path) {
				s.skipped++
				return nil
			}
			r, err := f.open()
			n := 0
			if err == nil {
				n, err = q.Matcher.count(&s.scanner, cancelled{ctx, r}, limit)
				r.Close()
			}
			switch {
			case ctx.Err() != nil:
				return context.Cause(ctx)
			case errors.Is(err, ErrBinary):
			case err != nil && !errors.Is(err, fs.ErrNotExist):
				s.unreadable++
			case n > 0:
				if s.hits = append(s.hits, FileCount{f.path, n}); len(s.hits) > maxFiles {
					return ErrTooMany
				}
			}
			return nil
		},
	})
	var hits []FileCount
	for i := range states {
		hits = append(hits, states[i].hits...)
		unreadable += states[i].unreadable
		found.Skipped += states[i].skipped
	}
	found.Unreadable = unreadable
	if err == nil && len(hits) > maxFiles {
		err = ErrTooMany
	}
	return hits, err
}

// lines reads the page's lines: only the files that hold them are read again.
func lines(ctx context.Context, root *workspace.Root, q Query, hits []FileCount, found *Found) error {
	skip := q.Offset
	p := page{query: &q, found: found, room: q.MaxBytes}
	for _, h := range hits {
		if skip >= h.Count {
			skip -= h.Count
			continue
		}
		if p.full() {
			break
		}
		f, _, err := root.Open(h.Path)
		if err != nil {
			found.Unreadable++ // it was there a moment ago
			skip = 0
			continue
		}
		p.path, p.skip = h.Path, skip
		err = p.read(cancelled{ctx, f})
		f.Close()
		if err != nil && !errors.Is(err, ErrBinary) {
			return err
		}
		skip = 0
	}
	return nil
}

// cancelled is a reader that ends with its context.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	return c.r.Read(p)
}

// below is the part of a path under base.
func below(base, p string) string {
	if base == "." {
		return p
	}
	if rest, ok := strings.CutPrefix(p, base+"/"); ok {
		return rest
	}
	return path.Base(p)
}
