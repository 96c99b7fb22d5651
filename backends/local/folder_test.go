//go:build linux

package local

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A folder that is another one by now is neither an empty workspace nor two
// different ones; what runs can still be stopped.
func TestFolderReplaced(t *testing.T) {
	at := binding(t)
	env := open(t, at)
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "count", Command: counter, Actor: at.Session})
	if err != nil {
		t.Fatal(err)
	}
	away := at.WorkspaceFolder + "-away"
	if err := os.Rename(at.WorkspaceFolder, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(at.WorkspaceFolder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, arguments := range map[string]map[string]any{
		"read_file":        {"path": "f"},
		"write_file":       {"path": "f", "content": "x"},
		"edit_file":        {"path": "f", "old_text": "x", "new_text": "y"},
		"list_files":       {},
		"grep":             {"pattern": "x"},
		"glob":             {"pattern": "*"},
		"present_artifact": {"path": "f"},
		"bash":             {"command": "touch f"},
		"git":              {"subcommand": "init"},
	} {
		_, err := try(t, env, name, arguments)
		wantKind(t, name, err, tool.EnvironmentLost)
	}
	files := env.(backends.FileSystem)
	_, err = files.Stat(t.Context(), "")
	wantKind(t, "stat", err, tool.EnvironmentLost)
	_, err = files.ReadDirectory(t.Context(), "")
	wantKind(t, "read directory", err, tool.EnvironmentLost)
	_, err = files.ReadFile(t.Context(), "f", 0, -1)
	wantKind(t, "read", err, tool.EnvironmentLost)
	_, err = files.WriteFile(t.Context(), "f", nil)
	wantKind(t, "write", err, tool.EnvironmentLost)
	_, err = env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "again", Command: "true", Actor: at.Session})
	wantKind(t, "start", err, tool.EnvironmentLost)
	for _, dir := range []string{at.WorkspaceFolder, away} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%s holds %v, %v", dir, entries, err)
		}
	}
	if _, err := try(t, env, "process", map[string]any{"action": "stop", "process_id": p.ID}); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := os.Remove(at.WorkspaceFolder); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(away, at.WorkspaceFolder); err != nil {
		t.Fatal(err)
	}
	run(t, env, "touch f")
	if _, err := try(t, env, "read_file", map[string]any{"path": "f"}); err != nil {
		t.Errorf("after it was put back: %v", err)
	}
}

// In a linked worktree git works as in its repository; a folder that merely
// claims to be one gets nothing.
func TestWorktree(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is not installed, and in CI nothing may be skipped")
		}
		t.Skip("git is not installed")
	}
	linked := binding(t)
	main := linked.WorkspaceFolder + "-main"
	for _, args := range [][]string{
		{"init", "-q", main},
		{"-C", main, "commit", "-q", "--allow-empty", "-m", "first"},
		{"-C", main, "worktree", "add", "-q", linked.WorkspaceFolder},
	} {
		cmd := exec.CommandContext(t.Context(), git, append([]string{"-c", "user.name=n", "-c", "user.email=e@example.com"}, args...)...)
		cmd.Env = append(os.Environ(), "HOME="+main, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v\n%s", args, err, out)
		}
	}
	const commit = "touch new && git add new && git -c user.name=n -c user.email=e@example.com commit -q -m second"
	run(t, open(t, linked), commit+" && git branch other && git branch -d other && git stash list")
	if out, err := exec.CommandContext(t.Context(), git, "-C", linked.WorkspaceFolder, "log", "--format=%s").CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "second\n") {
		t.Errorf("the log is %s, %v", out, err)
	}
	_, err = try(t, open(t, linked), "bash", map[string]any{"command": "touch " + main + "/outside"})
	if _, seen := os.Stat(filepath.Join(main, "outside")); err != nil || seen == nil {
		t.Errorf("the main worktree is written: %v", err)
	}

	liar := binding(t)
	claim, err := os.ReadFile(filepath.Join(linked.WorkspaceFolder, ".git"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(liar.WorkspaceFolder, ".git"), claim, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = try(t, open(t, liar), "bash", map[string]any{"command": "touch " + main + "/.git/outside"})
	if _, seen := os.Stat(filepath.Join(main, ".git", "outside")); err != nil || seen == nil {
		t.Errorf("a claim is believed: %v", err)
	}
}
