package session

import (
	"encoding/json"
	"time"
)

// Constraints tighten what a session or a call may do. What cannot be applied
// where it stands is an error, never ignored.
type Constraints struct {
	// Timeout bounds one call; 0 means the session's.
	Timeout time.Duration
	// MaxOutputBytes bounds what one command returns; 0 means the session's.
	MaxOutputBytes int64
	// Filesystem is "" or "read_only".
	Filesystem string
	// Scope says which calls the others apply to: "" (all), "tools", "jobs", "all".
	Scope string

	// The members below make something new and stand on session/open and
	// job/run only.

	Network     string
	Memory      int64 // bytes
	CPUs        float64
	CPUTime     time.Duration
	Image       string
	TmpfsNoexec *bool
	Profile     string
}

// ParseConstraints decodes the editor's constraints object; empty and null mean
// none. Errors are [tool.InvalidParams] with the member's path below prefix.
func ParseConstraints(prefix string, raw json.RawMessage) (Constraints, error) {
	return Constraints{}, nil
}
