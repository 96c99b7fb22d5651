package docker

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestProbe(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.sock")
	b := New(Options{Getenv: func(name string) string {
		if name == "DOCKER_HOST" {
			return "unix://" + none
		}
		return ""
	}})
	defer b.Close()
	err := b.Probe(t.Context())
	if tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), none) {
		t.Errorf("a daemon that is not there: %v", err)
	}
}
