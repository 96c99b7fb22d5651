package session

import (
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// toolLimits is the place's profile as it holds for tool calls: within the limits
// that the session has for these alone.
func (p *place) toolLimits() profile.Profile {
	limited := p.saved.Profile
	l := p.s.saved.ToolLimits // never changes
	if l == nil {
		return limited
	}
	if l.Timeout > 0 {
		limited.Timeout = min(limited.Timeout, l.Timeout)
	}
	if l.MaxOutputBytes > 0 {
		limited.MaxOutputBytes = min(limited.MaxOutputBytes, l.MaxOutputBytes)
	}
	if l.ReadOnly {
		limited.PermissionMode, limited.MaxPermissionMode = tool.ReadOnly, tool.ReadOnly
	}
	return limited
}
