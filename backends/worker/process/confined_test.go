//go:build linux

package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestModes(t *testing.T) {
	more := t.TempDir()
	m, r := newTest(t, func(o *Options) { o.WritablePaths = []string{more} })
	outside := t.TempDir()
	const try = `echo x > "$TARGET"`
	for _, tt := range []struct {
		mode   tool.Mode
		target string
		ok     bool
	}{
		{tool.Standard, filepath.Join(m.o.Root, "f"), true},
		{tool.Standard, filepath.Join(more, "f"), true},
		{tool.Standard, "$TMPDIR/f", true},
		{tool.Standard, filepath.Join(outside, "f"), false},
		{tool.Standard, "/dev/null", true},
		{tool.ReadOnly, filepath.Join(m.o.Root, "f"), false},
		{tool.ReadOnly, filepath.Join(more, "f"), false},
		{tool.ReadOnly, "$TMPDIR/f", true},
		{tool.ReadOnly, filepath.Join(outside, "f"), false},
		{tool.Unconfined, filepath.Join(outside, "f"), true},
		{tool.Unconfined, "$TMPDIR/f", true},
	} {
		line := strings.ReplaceAll(try, "$TARGET", tt.target)
		got, err := m.Run(t.Context(), Command{Command: line, Mode: tt.mode})
		if err != nil || (got.ExitCode == 0) != tt.ok || got.SandboxDenied == tt.ok || got.Mode != tt.mode {
			t.Errorf("%s to %s: %+v %s %v", tt.mode, tt.target, got, got.Stderr, err)
		}
		p := startRequest(t, m, tool.StartRequest{Command: line, PermissionMode: tt.mode})
		if got := wait(t, m, p.ID); (got.ExitCode == 0) != tt.ok || got.SandboxDenied == tt.ok || got.SandboxMode != tt.mode {
			t.Errorf("%s to %s in the background: %+v", tt.mode, tt.target, got)
		}
	}
	if len(r.events) == 0 {
		t.Error("no events")
	}
}

// Failing for reasons of its own is no denial, and neither is being denied by
// something else where nothing is confined.
func TestNotDenied(t *testing.T) {
	m, _ := newTest(t)
	for _, c := range []Command{
		{Command: "echo nothing; exit 1", Mode: tool.Standard},
		{Command: "echo Permission denied; exit 0", Mode: tool.Standard},
		{Command: "echo Permission denied; exit 1", Mode: tool.Unconfined},
	} {
		if got, err := m.Run(t.Context(), c); err != nil || got.SandboxDenied {
			t.Errorf("%s in %s: %+v %v", c.Command, c.Mode, got, err)
		}
	}
}

// The denial is understood in the words of many programs.
func TestDeniedInOtherWords(t *testing.T) {
	m, _ := newTest(t)
	for _, words := range []string{
		"sh: 1: cannot create /x: Permission denied", "Error: EACCES: permission denied, mkdir '/x'", "PermissionError: [Errno 13] /x",
		"mv: cannot move 'a' to 'b': Invalid cross-device link", "OSError: [Errno 18] EXDEV", "java.nio.file.AccessDeniedException: /x",
		"error: insufficient permission for adding an object to repository database .git/objects",
	} {
		c := Command{Argv: []string{"sh", "-c", `printf '%s\n' "$1" >&2; exit 1`, "sh", words}, Mode: tool.Standard}
		if got, err := m.Run(t.Context(), c); err != nil || !got.SandboxDenied {
			t.Errorf("%q: %+v, %v", words, got, err)
		}
	}
}

func TestWritableOfOneCommand(t *testing.T) {
	m, _ := newTest(t)
	more := t.TempDir()
	line := "echo x > " + filepath.Join(more, "f")
	if got, err := m.Run(t.Context(), Command{Command: line, Mode: tool.Standard, Writable: []string{more}}); err != nil || got.ExitCode != 0 {
		t.Errorf("with it: %s %v", got.Stderr, err)
	}
	for _, c := range []Command{{Command: line, Mode: tool.Standard}, {Command: line, Mode: tool.ReadOnly, Writable: []string{more}}} {
		if got, err := m.Run(t.Context(), c); err != nil || got.ExitCode == 0 {
			t.Errorf("%s with %v: %+v %v", c.Mode, c.Writable, got, err)
		}
	}
}

// Without enough Landlock nothing that needs it runs, and the rest does.
func TestLandlockIsRequired(t *testing.T) {
	for _, tt := range []struct {
		name string
		abi  func() (int, error)
		says string
	}{
		{"absent", func() (int, error) { return 0, errors.New("function not implemented") }, "has none: function not implemented"},
		{"old", func() (int, error) { return 2, nil }, "needs Landlock ABI 3, and this kernel has 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, _ := newTest(t, func(o *Options) { o.ABI = tt.abi })
			proof := filepath.Join(m.o.Root, "proof")
			for _, mode := range []tool.Mode{tool.Standard, tool.ReadOnly} {
				_, err := m.Run(t.Context(), Command{Command: "touch " + proof, Mode: mode})
				var e *tool.Error
				if !errors.As(err, &e) || e.Kind != tool.Unsupported || !strings.Contains(e.Message, tt.says) || e.Hint == "" {
					t.Errorf("run in %s: %v", mode, err)
				}
				if _, err := m.Start(t.Context(), tool.StartRequest{Command: "touch " + proof, PermissionMode: mode}); tool.KindOf(err) != tool.Unsupported {
					t.Errorf("start in %s: %v", mode, err)
				}
			}
			if _, err := os.Stat(proof); err == nil {
				t.Error("it ran")
			}
			if got, err := m.Run(t.Context(), Command{Command: "true", Mode: tool.Unconfined}); err != nil || got.ExitCode != 0 {
				t.Errorf("unconfined: %v", err)
			}
		})
	}
	m, _ := newTest(t, func(o *Options) {
		o.WritablePaths = []string{"/"}
		o.ABI = func() (int, error) { return 0, errors.New("absent") }
	})
	if got, err := m.Run(t.Context(), Command{Command: "true", Mode: tool.Standard}); err != nil || got.ExitCode != 0 {
		t.Errorf("standard with everything writable: %v", err)
	}
}
