//go:build unix

package plugins

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// A pipe is not waited for, neither as a module nor as a record: it is judged as it was
// opened, so that none can be put in the place of a file that was judged.
func TestPipes(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(t.TempDir(), "m.wasm")
	if err := errors.Join(unix.Mkfifo(file, 0o600), unix.Mkfifo(b.record("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Put(t.Context(), file, MaxModule, ModuleHead); tool.KindOf(err) != tool.ConfigInvalid || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a module: %v", err)
	}
	if err := readJSON(b.record("x"), new(record)); err == nil || !strings.Contains(err.Error(), "is not a record") {
		t.Errorf("a record: %v", err)
	}
}
