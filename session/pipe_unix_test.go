//go:build unix

package session_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// A configuration that is a pipe is an error, and the watch on it waits for no
// writer.
func TestConfigIsPipe(t *testing.T) {
	r := newRig(t)
	r.config += ".pipe"
	if err := unix.Mkfifo(r.config, 0o600); err != nil {
		t.Fatal(err)
	}
	s := r.start()
	_, _, err := s.Open(t.Context(), session.OpenRequest{Workspace: r.folder}, nil)
	wantKind(t, err, tool.ConfigInvalid)
}
