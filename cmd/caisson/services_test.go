package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/rpc"
	"github.com/caisson-dev/caisson/session"
)

// TestLetGo: what sessions work through is ended after them, and its failure is
// told with theirs.
func TestLetGo(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("CAISSON_CONFIG", "")
	t.Setenv("XDG_CONFIG_HOME", dir)
	s, err := new(app).open(t.Context(), rpc.OpenOptions{
		StateDir: filepath.Join(dir, "state"), DataDir: filepath.Join(dir, "data"), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	failure := errors.New("an engine does not answer")
	end, ended := s.Close, 0
	s.Close = func() error {
		ended++
		// Nothing new may begin in what is closed now.
		_, _, err := s.Sessions.Open(context.Background(), session.OpenRequest{}, nil)
		if tool.KindOf(err) != tool.Cancelled {
			t.Errorf("a session can still be opened: %v", err)
		}
		if _, err := s.Artifacts.List(""); !errors.Is(err, os.ErrClosed) {
			t.Errorf("artifacts can still be read: %v", err)
		}
		return errors.Join(end(), failure)
	}
	if err := letGo(t.Context(), s); !errors.Is(err, failure) || ended != 1 {
		t.Errorf("ended %d times: %v", ended, err)
	}
}
