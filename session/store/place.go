package store

import (
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
)

// Place is one environment that a session is bound to. What makes it this one, its
// profile and identity, never changes.
type Place struct {
	// Profile is the whole profile as it was when the session was opened.
	Profile     profile.Profile `json:"profile"`
	Environment string          `json:"environment"`
	// Root is the workspace as paths in the environment see it; "" until it was
	// opened once.
	Root string `json:"root,omitempty"`
	// Removed says that the environment was removed, such as when the session was
	// closed.
	Removed bool `json:"removed,omitempty"`
	// Ended says that the session's part of an environment that stays was ended, when
	// the session was closed, so that it need not be reached for that again.
	Ended bool `json:"ended,omitempty"`
	// Incarnation is that of the shared environment when the session was first
	// in it, so that one that was removed and made anew by others is not taken
	// for it.
	Incarnation string `json:"incarnation,omitempty"`
	// Plugins says that nothing but registered tools runs there.
	Plugins bool `json:"plugins_only,omitempty"`
	// Packs are the tool packs in it.
	Packs []Pack `json:"packs,omitempty"`
	// OneOff says that the environment was made for one job. It is removed with
	// that, or with the session when the service was killed meanwhile.
	OneOff bool `json:"one_off,omitempty"`
}

// Limits are constraints as they are saved; members that are zero say nothing.
type Limits struct {
	Timeout        time.Duration `json:"timeout,omitempty"`
	CPUTime        time.Duration `json:"cpu_time,omitempty"`
	MaxOutputBytes int64         `json:"max_output_bytes,omitempty"`
	ReadOnly       bool          `json:"read_only,omitempty"`
	Network        string        `json:"network,omitempty"`
	Memory         int64         `json:"memory,omitempty"` // bytes
	CPUs           float64       `json:"cpus,omitempty"`
	PidsLimit      int64         `json:"pids_limit,omitempty"`
	Image          string        `json:"image,omitempty"`
	TmpfsNoexec    bool          `json:"tmpfs_noexec,omitempty"`
	Profile        string        `json:"profile,omitempty"`
}

// Override sends the tools that a glob over "group.tool" matches to the place of
// the session whose profile has this name.
type Override struct {
	Pattern string `json:"pattern"`
	Profile string `json:"profile"`
}

// All are the places of the session, its own one first.
func (s *Session) All() []Place {
	return append([]Place{s.Place}, s.Places...)
}

// Bound finds the place whose environment has the identity.
func (s *Session) Bound(identity string) (Place, bool) {
	for _, p := range s.All() {
		if p.Environment == identity {
			return p, true
		}
	}
	return Place{}, false
}
