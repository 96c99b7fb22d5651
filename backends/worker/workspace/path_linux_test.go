package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A directory whose path is no text is none that could be told of, behind a link too.
func TestOpenNeedsText(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "caf\xe9")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	alias := filepath.Join(t.TempDir(), "alias")
	link(t, dir, alias)
	for _, p := range []string{dir, alias} {
		r, err := Open(p)
		if err == nil {
			err = r.Close()
		}
		if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), "caf%E9") {
			t.Errorf("opening %q: %v", p, err)
		}
	}
}
