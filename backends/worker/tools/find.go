package tools

import (
	"context"
	"encoding/json"
	"errors"
	"path"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools/search"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

type grepArgs struct {
	Pattern    *string `json:"pattern" required:""`
	Path       string  `json:"path"`
	Include    globs   `json:"include"`
	OutputMode string  `json:"output_mode"`
	Context    *int64  `json:"context"`
	Before     *int64  `json:"before"`
	After      *int64  `json:"after"`
	IgnoreCase bool    `json:"ignore_case"`
	Offset     *int64  `json:"offset"`
}

// globs is one glob or a list of them.
type globs []string

// UnmarshalJSON takes a string or an array of strings.
func (g *globs) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*g = nil
		if one != "" {
			*g = globs{one}
		}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return errors.New("include must be a glob or an array of globs")
	}
	*g = list
	return nil
}

type grepResult struct {
	OutputMode string      `json:"output_mode"`
	Matches    []grepLine  `json:"matches,omitempty"`
	Files      []string    `json:"files,omitempty"`
	Counts     []grepCount `json:"counts,omitempty"`
	// TotalMatches counts matching lines in the modes that return files.
	TotalMatches int `json:"total_matches,omitzero"`
	// Unreadable counts files and directories that could not be searched.
	Unreadable int64 `json:"unreadable,omitzero"`
	// Guarded counts files that were not searched as they may hold secrets.
	Guarded int64 `json:"guarded,omitzero"`
	paging  `json:",inline"`
}

type grepLine struct {
	Path    string `json:"path"`
	Line    int    `json:"line"`
	Text    string `json:"text"`
	Context bool   `json:"context,omitzero"`
}

type grepCount struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
}

// The output modes of grep.
const (
	modeContent = "content"
	modeFiles   = "files_with_matches"
	modeCount   = "count"
)

func (s *Set) grep(ctx context.Context, c *call, a grepArgs) (tool.Result, error) {
	q, err := s.query(c, a)
	if err != nil {
		return tool.Result{}, err
	}
	found, err := search.Grep(ctx, s.o.Root, q)
	switch {
	case errors.Is(err, search.ErrTooMany):
		return tool.Result{}, refuse("%v; give a narrower path, include or pattern", err)
	case errors.Is(err, search.ErrBinary):
		return tool.Result{}, refuse("%q is a binary file, which grep does not search; a command can, such as grep -a", s.o.Root.Format(q.Base))
	}
	if err != nil {
		return tool.Result{}, err
	}
	res := grepResult{OutputMode: a.OutputMode, Unreadable: found.Unreadable, Guarded: found.Skipped}
	if res.OutputMode == "" {
		res.OutputMode = modeContent
	}
	res.paging = newPaging(found.Total, q.Offset, found.Returned)
	switch q.Mode {
	case search.Content:
		for _, l := range found.Lines {
			res.Matches = append(res.Matches, grepLine{s.o.Root.Format(l.Path), l.Number, l.Text, l.Context})
		}
	case search.Files:
		for _, f := range found.Files {
			res.Files = append(res.Files, s.o.Root.Format(f.Path))
		}
	case search.Count:
		res.TotalMatches = found.Matches
		for _, f := range found.Files {
			res.Counts = append(res.Counts, grepCount{s.o.Root.Format(f.Path), f.Count})
		}
	}
	return result(res)
}

// query checks the arguments of grep.
func (s *Set) query(c *call, a grepArgs) (search.Query, error) {
	q := search.Query{Limit: pagePaths, MaxBytes: s.limit(c, pageBytes)}
	switch a.OutputMode {
	case "", modeContent:
		q.Mode, q.Limit = search.Content, pageLines
	case modeFiles:
		q.Mode = search.Files
	case modeCount:
		q.Mode = search.Count
	default:
		return q, refuse("output_mode is %q; it must be %s, %s or %s", a.OutputMode, modeContent, modeFiles, modeCount)
	}
	if err := errors.Join(
		between("context", a.Context, 0, search.MaxContext),
		between("before", a.Before, 0, search.MaxContext),
		between("after", a.After, 0, search.MaxContext),
		between("offset", a.Offset, 0, maxOffset)); err != nil {
		return q, err
	}
	around := or(a.Context, 0)
	q.Before, q.After = int(or(a.Before, around)), int(or(a.After, around))
	q.Offset = int(or(a.Offset, 0))
	var err error
	if q.Base, err = s.fileName(c, a.Path); err != nil {
		return q, err
	}
	q.Skip = s.skipGuarded(c, q.Base)
	if q.Matcher, err = search.NewMatcher(*a.Pattern, a.IgnoreCase); err != nil {
		return q, refuse("pattern: %v (the syntax is RE2: no look-around, no back-references)", err)
	}
	if q.Include, err = search.NewGlobs(a.Include); err != nil {
		return q, refuse("include: %v", err)
	}
	return q, nil
}

type globArgs struct {
	Pattern string `json:"pattern" required:""`
	Path    string `json:"path"`
	Offset  *int64 `json:"offset"`
}

type globResult struct {
	Files      []string `json:"files"`
	Unreadable int64    `json:"unreadable,omitzero"`
	paging     `json:",inline"`
}

func (s *Set) glob(ctx context.Context, c *call, a globArgs) (tool.Result, error) {
	if err := between("offset", a.Offset, 0, maxOffset); err != nil {
		return tool.Result{}, err
	}
	base, pattern, err := search.SplitGlob(a.Pattern)
	if err != nil {
		return tool.Result{}, refuse("%v", err)
	}
	if !path.IsAbs(base) {
		dir, err := s.o.Root.Name(a.Path)
		if err != nil {
			return tool.Result{}, err
		}
		base = path.Join(dir, base)
	}
	if base, err = s.o.Root.Name(workspace.Format(base)); err != nil {
		return tool.Result{}, err
	}
	paths, unreadable, err := search.Glob(ctx, s.o.Root, base, pattern)
	switch {
	case errors.Is(err, search.ErrTooMany):
		return tool.Result{}, refuse("%v; give a narrower pattern", err)
	case err != nil:
		return tool.Result{}, err
	}
	res := globResult{Files: []string{}, Unreadable: unreadable}
	offset := int(or(a.Offset, 0))
	room := s.limit(c, pageBytes)
	for _, p := range paths[min(offset, len(paths)):] {
		if len(res.Files) == pagePaths || room <= 0 {
			break
		}
		res.Files = append(res.Files, s.o.Root.Format(p))
		room -= len(p)
	}
	res.paging = newPaging(len(paths), offset, len(res.Files))
	return result(res)
}
