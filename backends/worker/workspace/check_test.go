package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A root whose path leads elsewhere says so, until it is back.
func TestCheck(t *testing.T) {
	parent := t.TempDir()
	dir, away := filepath.Join(parent, "dir"), filepath.Join(parent, "away")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o700))
	r, err := Open(dir)
	must(err)
	defer r.Close()
	must(r.Check())
	must(os.Rename(dir, away))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.WriteFile(dir, nil, 0o600))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.Remove(dir))
	must(os.Mkdir(dir, 0o700))
	wantKind(t, r.Check(), tool.EnvironmentLost)
	must(os.Remove(dir))
	link(t, away, dir)
	must(r.Check()) // the same directory, by another way
	must(os.Remove(dir))
	must(os.Rename(away, dir))
	must(r.Check())
	must(os.Remove(dir))
	wantKind(t, r.Check(), tool.EnvironmentLost)
}
