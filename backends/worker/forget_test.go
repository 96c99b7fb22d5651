//go:build linux

package worker_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wire"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/workspace"
)

// A shutdown that forgets leaves nothing of the session, follows no link that a command
// has put there, and touches nothing of another session.
func TestForget(t *testing.T) {
	for name, test := range map[string]struct {
		forget bool
		// change does something to the state directory before the end.
		change func(t *testing.T, state, outside string)
		gone   bool
		fails  string
	}{
		"kept": {false, nil, false, ""},
		"gone": {true, nil, true, ""},
		"killed halfway": {true, func(t *testing.T, state, _ string) {
			if err := os.RemoveAll(filepath.Join(worker.SessionDir(state, "s1"), "processes")); err != nil {
				t.Fatal(err)
			}
		}, true, ""},
		"its directory is a link": {true, func(t *testing.T, state, _ string) {
			dir := worker.SessionDir(state, "s1")
			if err := errors.Join(os.Rename(dir, dir+".aside"), os.Symlink("s2", dir)); err != nil {
				t.Fatal(err)
			}
		}, true, ""},
		"the parent is a link": {true, func(t *testing.T, state, _ string) {
			dir := filepath.Join(state, "sessions")
			if err := errors.Join(os.Rename(dir, dir+".aside"), os.Symlink("sessions.aside", dir)); err != nil {
				t.Fatal(err)
			}
		}, false, "is a link"},
		"the parent is a link to elsewhere": {true, func(t *testing.T, state, outside string) {
			dir := filepath.Join(state, "sessions")
			err := errors.Join(os.Mkdir(filepath.Join(outside, "s1"), 0o700), os.Rename(dir, dir+".aside"), os.Symlink(outside, dir))
			if err != nil {
				t.Fatal(err)
			}
		}, false, "cannot be removed"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			t.Cleanup(func() {
				if err := workspace.Remove(filepath.Join(o.State, "sessions")); err != nil {
					t.Error(err)
				}
			})
			start(t, o)
			c := connect(t, o, t.TempDir())
			pid := holder(t, o)
			outside := t.TempDir()
			other := worker.SessionDir(o.State, "s2")
			precious := []string{filepath.Join(outside, "precious"), filepath.Join(other, "precious")}
			if err := os.MkdirAll(other, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range precious {
				if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			p := startProcess(t, c, "leave", `cd "$TMPDIR" && mkdir -p a/b && ln -s `+outside+` a/out && ln -s `+other+` a/b/other && touch a/b/f && chmod 500 a/b && echo done; exec sleep 1000`)
			output(t, c, p.ID, 0)
			if test.change != nil {
				test.change(t, o.State, outside)
			}
			_, err := c.Call(t.Context(), wire.MethodShutdown, wire.Shutdown{Forget: test.forget}, nil)
			wantDead(t, p.PID)
			if test.fails != "" {
				wantKind(t, "forgetting", err, tool.Internal, test.fails)
			} else if err != nil {
				t.Error(err)
			}
			if _, err := os.Lstat(worker.SessionDir(o.State, "s1")); os.IsNotExist(err) != test.gone {
				t.Errorf("what was kept of the session: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(patience); alive(pid); time.Sleep(10 * time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatal("the worker has not ended")
				}
			}
			if sessions := filepath.Dir(other); test.fails != "" {
				if err := errors.Join(os.Remove(sessions), os.Rename(sessions+".aside", sessions)); err != nil {
					t.Fatal(err)
				}
			}
			for _, file := range precious {
				if _, err := os.Stat(file); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// alive reports whether a process runs; one that nobody has waited for yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}
