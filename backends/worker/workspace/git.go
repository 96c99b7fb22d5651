package workspace

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/caisson-dev/caisson/diskfile"
)

// maxGitFile bounds the small files in which git keeps one path.
const maxGitFile = 64 << 10

// GitDirectories returns the directory outside dir that git must be able to
// write so that it works in dir: the common directory of the repository of
// which dir is a linked worktree, or the one that belongs to the submodule dir.
// It returns nil for every other directory.
//
// What dir says about it is not believed, as whoever works there could have
// written it: the directory outside must name dir in its turn.
func GitDirectories(dir string) []string {
	own := filepath.Join(dir, ".git")
	info, err := os.Lstat(own)
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	gitdir, ok := strings.CutPrefix(firstLine(own), "gitdir: ")
	if !ok {
		return nil
	}
	gitdir, err = filepath.EvalSymlinks(absolute(dir, gitdir))
	if err != nil || within(dir, gitdir) {
		return nil
	}
	if common := firstLine(filepath.Join(gitdir, "commondir")); common != "" {
		common, err := filepath.EvalSymlinks(absolute(gitdir, common))
		if err != nil || filepath.Dir(gitdir) != filepath.Join(common, "worktrees") ||
			!oneFile(absolute(gitdir, firstLine(filepath.Join(gitdir, "gitdir"))), own) || !repository(common) {
			return nil
		}
		return []string{common}
	}
	if worktree := coreWorktree(filepath.Join(gitdir, "config")); worktree != "" && repository(gitdir) &&
		oneFile(absolute(gitdir, worktree), dir) {
		return []string{gitdir}
	}
	return nil
}

// repository reports whether a directory looks like one of git's.
func repository(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// coreWorktree is the setting core.worktree of a submodule, as git itself
// writes it.
func coreWorktree(config string) string {
	section := ""
	for line := range strings.Lines(readSmall(config)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
		}
		if value, ok := strings.CutPrefix(line, "worktree = "); ok && section == "[core]" {
			return value
		}
	}
	return ""
}

func absolute(base, p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(base, p)
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	rel, err := filepath.Rel(dir, p)
	return err == nil && filepath.IsLocal(rel)
}

// oneFile reports whether two paths lead to one file.
func oneFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func firstLine(p string) string {
	line, _, _ := strings.Cut(readSmall(p), "\n")
	return strings.TrimSuffix(line, "\r")
}

// readSmall is the content of a file, "" when it cannot be read.
func readSmall(p string) string {
	f, _, err := diskfile.Open(p)
	if err != nil {
		return ""
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxGitFile))
	if err != nil {
		return ""
	}
	return string(b)
}
