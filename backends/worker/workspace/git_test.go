package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

func TestGitDirectories(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed, and in CI nothing may be skipped")
		}
		t.Skip("git is not installed")
	}
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-c", "protocol.file.allow=always", "-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
		cmd.Dir = filepath.Join(top, dir)
		cmd.Env = append(os.Environ(), "HOME="+top, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	put := func(name, content string) {
		t.Helper()
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	in(".", "init", "-q", "main")
	in("main", "commit", "-q", "--allow-empty", "-m", "first")
	in("main", "worktree", "add", "-q", "../linked")
	in("main", "worktree", "add", "-q", "inner")
	in(".", "init", "-q", "library")
	in("library", "commit", "-q", "--allow-empty", "-m", "first")
	in("main", "submodule", "--quiet", "add", "../library", "sub")
	// A workspace that claims somebody's directory, and one that has made up both
	// ends as far as it can.
	put("liar/.git", "gitdir: "+filepath.Join(top, "main/.git/worktrees/linked")+"\n")
	put("thief/.git", "gitdir: "+filepath.Join(top, "home")+"\n")
	put("home/private", "")
	put("forger/.git", "gitdir: fake/worktrees/x\n")
	put("forger/fake/worktrees/x/commondir", filepath.Join(top, "main/.git")+"\n")
	put("forger/fake/worktrees/x/gitdir", filepath.Join(top, "forger/.git")+"\n")
	put("broken/.git", "not a path\n")
	put("plain/file", "")

	common := []string{filepath.Join(top, "main/.git")}
	for dir, want := range map[string][]string{
		"linked": common, "main/inner": common, "main/sub": {filepath.Join(top, "main/.git/modules/sub")},
		"main": nil, "liar": nil, "thief": nil, "forger": nil, "broken": nil, "plain": nil, "nothing": nil,
	} {
		if got := GitDirectories(filepath.Join(top, dir)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
