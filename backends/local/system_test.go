package local

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// Windows runs no local commands in any mode, and says what to choose; what other
// systems cannot confine is up to each mode.
func TestNoCommands(t *testing.T) {
	err := noCommands("windows")
	if tool.KindOf(err) != tool.Unsupported {
		t.Errorf("its kind is %s", tool.KindOf(err))
	}
	if hint := tool.HintOf(err); !strings.Contains(err.Error(), "Windows") || !strings.Contains(hint, "docker") || !strings.Contains(hint, "file and search tools work") {
		t.Errorf("it says %v, %s", err, hint)
	}
	for _, system := range []string{"linux", "darwin"} {
		if err := noCommands(system); err != nil {
			t.Errorf("%s: %v", system, err)
		}
	}
}
