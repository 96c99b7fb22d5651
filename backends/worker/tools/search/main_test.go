package search

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oracle is a program that a test compares with.
func oracle(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not installed, and in CI nothing may be skipped", name)
		}
		t.Skipf("%s is not installed: there is nothing to compare with", name)
	}
	return path
}

// tree writes files, with the directories that they need, and opens the root.
func tree(t testing.TB, files map[string]string) *workspace.Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		write(t, filepath.Join(dir, name), content)
	}
	return open(t, dir)
}

func write(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, dir string) *workspace.Root {
	t.Helper()
	root, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}
