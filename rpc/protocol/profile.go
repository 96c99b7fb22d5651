package protocol

import "time"

// ProfileListResult is the answer to profile/list.
type ProfileListResult struct {
	// Default is the profile of a session that names none.
	Default  string        `json:"default"`
	Profiles []ProfileInfo `json:"profiles"`
}

// ProfileInfo describes one profile of the user's configuration. "local"
// always exists.
type ProfileInfo struct {
	Name    string `json:"name"`
	Backend string `json:"backend"`
	// Summary is one line for a person.
	Summary string `json:"summary"`
	Valid   bool   `json:"valid"`
	// Problem is why a session on it cannot be opened.
	Problem string `json:"problem,omitzero"`
}

// ProfileCheckParams asks to really try a profile.
type ProfileCheckParams struct {
	Profile string `json:"profile"`
}

// Health is what a check found.
type Health struct {
	OK         bool    `json:"ok"`
	Checks     []Check `json:"checks"`
	DurationMs int64   `json:"durationMs"`
}

// Check is one thing that was tried.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitzero"`
}

// BackendListResult is the answer to backend/list.
type BackendListResult struct {
	Backends []BackendInfo `json:"backends"`
}

// BackendInfo says what this build and this machine can do with one backend.
type BackendInfo struct {
	Kind string `json:"kind"`
	// Built says that this build has it, Usable that it can be used now.
	Built  bool   `json:"built"`
	Usable bool   `json:"usable"`
	Detail string `json:"detail,omitzero"`
	Hint   string `json:"hint,omitzero"`
}

// BackendPruneParams bounds what backend/prune removes. Only resources whose
// owner is proven gone are touched, never another host's.
type BackendPruneParams struct {
	// Backend is the one kind to look at; missing means all.
	Backend string `json:"backend,omitzero"`
	// DryRun only lists.
	DryRun    bool     `json:"dryRun,omitzero"`
	OlderThan Duration `json:"olderThan,omitzero"`
}

// BackendPruneResult is what was, or with dryRun would be, removed.
type BackendPruneResult struct {
	Resources []Resource `json:"resources"`
	// Unreached says of each engine or machine that could not be looked at why.
	Unreached []string `json:"unreached,omitzero"`
}

// Resource is something that a backend made.
type Resource struct {
	Backend     string    `json:"backend"`
	Kind        string    `json:"kind"` // container, volume, directory, ...
	ID          string    `json:"id"`
	Environment string    `json:"environmentId,omitzero"`
	SessionID   string    `json:"sessionId,omitzero"`
	CreatedAt   time.Time `json:"createdAt"`
	Reason      string    `json:"reason"`
}

// ConfigChangedParams tells that the user's configuration file has changed: new
// sessions use it, others keep what they are bound to.
type ConfigChangedParams struct {
	// Problem is what is wrong with it; then no new session opens.
	Problem string `json:"problem,omitzero"`
}
