package confine

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestConfines(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		want   bool
	}{
		{Policy{Mode: tool.Unconfined, Root: "/w"}, false},
		{Policy{Mode: tool.Standard, Root: "/w"}, true},
		{Policy{Root: "/w"}, true},
		{Policy{Mode: tool.Standard, Root: "/w", Writable: []string{"/x", "/"}}, false},
		{Policy{Mode: tool.Standard, Root: "/w", Writable: []string{"/x/.."}}, false},
		{Policy{Mode: tool.Standard, Root: "/"}, false},
		{Policy{Mode: tool.ReadOnly, Root: "/"}, true},
		{Policy{Mode: tool.ReadOnly, Root: "/w", Writable: []string{"/"}}, true},
	} {
		if got := tt.policy.Confines(); got != tt.want {
			t.Errorf("%+v confines: %v", tt.policy, got)
		}
	}
}

func TestABIIsRequired(t *testing.T) {
	for _, tt := range []struct {
		name string
		abi  func() (int, error)
		says string
	}{
		{"absent", func() (int, error) { return 0, errors.New("no such call") }, "needs Landlock ABI 3, and this system has none: no such call"},
		{"none", func() (int, error) { return 0, nil }, "this kernel has 0"},
		{"old", func() (int, error) { return RequiredABI - 1, nil }, "needs Landlock ABI 3, and this kernel has 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for mode, hint := range map[tool.Mode]string{tool.Standard: `"writable_paths": ["/"]`, "": "writable_paths", tool.ReadOnly: "read-only by itself"} {
				_, err := NewLauncher(Policy{Mode: mode, Root: t.TempDir(), Temp: t.TempDir(), ABI: tt.abi})
				var e *tool.Error
				if !errors.As(err, &e) || e.Kind != tool.Unsupported || !strings.Contains(e.Message, tt.says) || !strings.Contains(e.Hint, hint) {
					t.Errorf("mode %q: %v (hint %q)", mode, err, e.Hint)
				}
			}
			l, err := NewLauncher(Policy{Mode: tool.Unconfined, ABI: tt.abi})
			if err != nil {
				t.Fatalf("unconfined: %v", err)
			}
			l.Close()
		})
	}
}

// On another system there is nothing to update: it is said what to choose.
func TestOtherSystems(t *testing.T) {
	abi := func() (int, error) { return 0, fmt.Errorf("%w, and this is darwin", ErrNotLinux) }
	for _, mode := range []tool.Mode{"", tool.Standard, tool.ReadOnly} {
		_, err := NewLauncher(Policy{Mode: mode, Root: t.TempDir(), Temp: t.TempDir(), ABI: abi})
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != tool.Unsupported || !errors.Is(err, ErrNotLinux) {
			t.Fatalf("mode %q: %v", mode, err)
		}
		for _, word := range []string{string(cmp.Or(mode, tool.Standard)), "darwin"} {
			if !strings.Contains(e.Message, word) {
				t.Errorf("mode %q: %q does not name %s", mode, e.Message, word)
			}
		}
		for _, choice := range []string{"docker", "ssh", `"permission_mode": "unconfined"`, `"max_permission_mode": "unconfined"`} {
			if !strings.Contains(e.Hint, choice) || strings.Contains(e.Hint, "Linux 6.2") {
				t.Errorf("mode %q: the hint is %q", mode, e.Hint)
			}
		}
	}
	l, err := NewLauncher(Policy{Mode: tool.Unconfined, ABI: abi})
	if err != nil {
		t.Fatalf("unconfined: %v", err)
	}
	l.Close()
}

func TestLauncherServesInOrderAndEnds(t *testing.T) {
	l, err := NewLauncher(Policy{Mode: tool.Unconfined})
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for range 10 {
		if !l.Do(func() { ran++ }) {
			t.Fatal("not served")
		}
	}
	l.Close()
	l.Close()
	if l.Do(func() { ran++ }) || ran != 10 {
		t.Errorf("ran %d times", ran)
	}
}

func TestRelativePathsAreRefused(t *testing.T) {
	if filepath.Separator != '/' {
		return
	}
	abi := func() (int, error) { return RequiredABI, nil }
	_, err := NewLauncher(Policy{Mode: tool.Standard, Root: "relative", Temp: t.TempDir(), ABI: abi})
	if err == nil {
		t.Error("a relative root was taken")
	}
}
