package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a workspace of files and links (content that begins with "-> ").
func open(t testing.TB, files map[string]string) *Root {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root
}

func link(t testing.TB, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

func wantKind(t *testing.T, err error, kind tool.Kind) {
	t.Helper()
	if err == nil || tool.KindOf(err) != kind {
		t.Errorf("error %v, want one of kind %s", err, kind)
	}
	var e *tool.Error
	if errors.As(err, &e) && e.Hint == "" && kind == tool.PathOutsideRoot {
		t.Errorf("%v has no hint", err)
	}
}

func read(t *testing.T, r *Root, name string) (string, error) {
	t.Helper()
	f, info, err := r.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, info.Size())
	_, err = f.ReadAt(b, 0)
	return string(b), err
}
