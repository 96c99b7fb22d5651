package tools

import (
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
)

// No hint asks for a mode above the environment's ceiling.
func TestHintsStayBelowTheCeiling(t *testing.T) {
	for _, c := range []struct {
		mode, ceiling tool.Mode
		asks          string // the mode that is asked for, "" for none
	}{
		{tool.ReadOnly, tool.ReadOnly, ""},
		{tool.ReadOnly, tool.Standard, "the mode standard"},
		{tool.ReadOnly, tool.Unconfined, "the mode standard"},
		{tool.Standard, tool.Standard, ""},
		{tool.Standard, tool.Unconfined, "the mode unconfined"},
	} {
		hints := []string{deniedHint(c.mode, c.ceiling)}
		if c.mode == tool.ReadOnly {
			hints = append(hints, (&call{mode: c.mode, ceiling: c.ceiling}).wider())
		}
		for _, hint := range hints {
			for _, mode := range []string{"in the mode standard", "in the mode unconfined"} {
				if asked := strings.Contains(hint, mode); asked != (mode == "in "+c.asks) {
					t.Errorf("%s below %s: %q", c.mode, c.ceiling, hint)
				}
			}
		}
	}
}
