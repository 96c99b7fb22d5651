package job

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/tools"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
	"github.com/caisson-dev/caisson/diskfile"
)

// collector makes snapshots of what a job left: regular files only. Symbolic
// links are not followed, so that what comes back was in the directory.
type collector struct {
	exports *tools.Exports
	root    *os.Root
	globs   []string               // none is everything
	aside   map[string]bool        // what does not come back
	leaves  func(name string) bool // what counts as dropped

	files   []tool.JobFile
	dropped int
	unkept  int   // of those that were dropped, for want of room on the disk
	noRoom  error // what the first of these failed of
	bytes   int64
	room    int // for entries of directories to be looked at
}

// collect returns the snapshots, sorted by path, and how many files got none. An
// error is that of ctx; then there are no snapshots.
func (c *collector) collect(ctx context.Context) ([]tool.JobFile, int, error) {
	c.walk(ctx, ".", 0)
	if ctx.Err() != nil {
		for _, f := range c.files {
			_ = c.exports.Release(f.Token) // nobody knows of it
		}
		return nil, 0, tool.Errorf(tool.EndKind(ctx), "collecting what the job left was cancelled: %w", context.Cause(ctx))
	}
	slices.SortFunc(c.files, func(a, b tool.JobFile) int { return strings.Compare(a.Path, b.Path) })
	return c.files, c.dropped, nil
}

func (c *collector) walk(ctx context.Context, dir string, depth int) {
	if depth > maxDepth || c.room == 0 {
		c.dropped++ // as the one that it is; what is in it is not known
		return
	}
	entries, err := list(c.root, dir, c.room+1)
	if err != nil || len(entries) > c.room {
		c.dropped++
		entries = entries[:min(len(entries), c.room)]
	}
	c.room -= len(entries) // at once, since they are held as long as what is in them is looked at
	for _, e := range entries {
		if ctx.Err() != nil {
			return
		}
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if c.mayHold(name) {
				c.walk(ctx, name, depth+1)
			}
		case e.Type().IsRegular() && !c.aside[name] && c.wanted(name):
			c.take(ctx, name)
		}
	}
}

// list is what is in a directory, at most most entries of it, sorted.
func list(root *os.Root, dir string, most int) ([]fs.DirEntry, error) {
	f, err := root.OpenFile(dir, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(most)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

func (c *collector) wanted(name string) bool {
	return len(c.globs) == 0 || slices.ContainsFunc(c.globs, func(glob string) bool {
		return doublestar.MatchUnvalidated(strings.TrimPrefix(glob, "./"), name)
	})
}

// mayHold reports whether a glob may match something below dir.
func (c *collector) mayHold(dir string) bool {
	return len(c.globs) == 0 || slices.ContainsFunc(c.globs, func(glob string) bool {
		base, _ := doublestar.SplitPattern(strings.TrimPrefix(glob, "./"))
		return base == "." || base == dir || strings.HasPrefix(base, dir+"/") || strings.HasPrefix(dir, base+"/")
	})
}

// take makes a snapshot of one file, or drops it.
func (c *collector) take(ctx context.Context, name string) {
	if len(c.files) >= maxFiles || c.leaves != nil && c.leaves(name) {
		c.dropped++
		return
	}
	token, size, err := c.snapshot(ctx, name)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		c.dropped++
		if tool.IsDiskFull(err) {
			c.unkept++
			c.noRoom = cmp.Or(c.noRoom, err)
		}
		return
	}
	c.bytes += size
	c.files = append(c.files, tool.JobFile{Path: workspace.Format(name), Size: size, Token: token})
}

var errTooMuch = errors.New("more than is collected")

func (c *collector) snapshot(ctx context.Context, name string) (token string, size int64, err error) {
	f, info, err := diskfile.OpenIn(c.root, name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	if c.bytes+info.Size() > maxBytes {
		return "", 0, errTooMuch
	}
	return c.exports.Create(ctx, f)
}
