package protocol

import "time"

// Session is what an editor works in: bound for good to one execution
// environment.
type Session struct {
	ID string `json:"id"`
	// Workspace is the URI of the opened folder, or null.
	Workspace     *string `json:"workspace"`
	Profile       string  `json:"profile"`
	Backend       string  `json:"backend"`
	EnvironmentID string  `json:"environmentId"`
	// Root is the workspace as paths inside the environment see it; empty until
	// the environment was opened once.
	Root  string       `json:"root"`
	State SessionState `json:"state"`
	// Shared: other sessions of the profile use the same environment.
	Shared bool `json:"shared"`
	// Persistent: files outlive the environment's idle limit.
	Persistent bool `json:"persistent"`
	// ParentID is the session that this one was forked from, which may be gone.
	ParentID   string            `json:"parentId,omitzero"`
	CreatedAt  time.Time         `json:"createdAt"`
	LastUsedAt time.Time         `json:"lastUsedAt"`
	Labels     map[string]string `json:"labels,omitempty"`
	// HeldBy is the process id of another service that has the session open: here it
	// cannot be opened until that one gives it up, and its state is as it was saved.
	HeldBy int `json:"heldBy,omitzero"`
	// Error says why a session is disconnected or failed.
	Error *SessionError `json:"error,omitzero"`
}

// SessionError is why a session cannot be used now.
type SessionError struct {
	Kind    Kind   `json:"kind"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitzero"`
}

// SessionState is where a session is in its life.
type SessionState string

// The states of a session.
const (
	SessionBound        SessionState = "bound" // saved; the first call opens its environment
	SessionConnecting   SessionState = "connecting"
	SessionReady        SessionState = "ready"
	SessionDisconnected SessionState = "disconnected" // the next call reconnects
	SessionClosed       SessionState = "closed"
	SessionFailed       SessionState = "failed"
)

// Values are all states of a session.
func (SessionState) Values() []SessionState {
	return []SessionState{SessionBound, SessionConnecting, SessionReady, SessionDisconnected, SessionClosed, SessionFailed}
}

// SessionOpenParams makes a session, or resumes the one of that id with its
// saved binding, whatever the configuration says now.
type SessionOpenParams struct {
	// SessionID resumes the session, or names the new one: one path component
	// of at most 64 letters, digits, "_", "-" and ".". Missing: the service
	// makes one.
	SessionID string `json:"sessionId,omitzero"`
	// Workspace is the file URI of the opened folder; null is a session that
	// belongs to no folder, which is local unless it names a profile.
	Workspace *string `json:"workspace"`
	// Profile is the profile of a new session; missing means the default. For
	// a session that exists, another one than it has is an error.
	Profile string `json:"profile,omitzero"`
	// Constraints tighten the session for good.
	Constraints *Constraints `json:"constraints,omitzero"`
	// Labels are kept and never interpreted: at most 32 of at most 256 bytes.
	Labels map[string]string `json:"labels,omitempty"`
	// Connect false saves the binding without opening the environment.
	Connect       *bool `json:"connect,omitzero"`
	WorkDoneToken Token `json:"workDoneToken,omitzero"`
}

// SessionOpenResult is the answer to session/open.
type SessionOpenResult struct {
	Session Session `json:"session"`
	// Resumed says that the session existed.
	Resumed bool `json:"resumed"`
}

// SessionParams names a session.
type SessionParams struct {
	SessionID string `json:"sessionId"`
}

// SessionResult carries one session.
type SessionResult struct {
	Session Session `json:"session"`
}

// SessionListParams filters session/list; empty means all.
type SessionListParams struct {
	State SessionState `json:"state,omitzero"`
	// Label must be on the session: "name" with any value, or "name=value".
	Label string `json:"label,omitzero"`
}

// SessionListResult is the answer to session/list, newest use first.
type SessionListResult struct {
	Sessions []Session `json:"sessions"`
}

// SessionForkParams asks for a session of the profile that another one was bound
// to, whatever the configuration says now, with an environment of its own, into
// which nothing is copied, unless the profile is shared.
type SessionForkParams struct {
	// SessionID is the session that is forked; it need not be open.
	SessionID string `json:"sessionId"`
	// NewSessionID names the new session, and must not exist. Missing: the
	// service makes one.
	NewSessionID  string `json:"newSessionId,omitzero"`
	WorkDoneToken Token  `json:"workDoneToken,omitzero"`
}

// SessionDeleteParams removes a session and its environment.
type SessionDeleteParams struct {
	SessionID string `json:"sessionId"`
	// Force forgets an environment that cannot be reached, too.
	Force bool `json:"force,omitzero"`
}

// SessionDeleteResult is the answer to session/delete.
type SessionDeleteResult struct {
	// Left says what may have been left behind: by a forced deletion, and in an
	// environment that stays and was not reached.
	Left string `json:"left,omitzero"`
}

// SessionChangedParams tells that a session is not as it was.
type SessionChangedParams struct {
	Session Session `json:"session"`
}

// SessionRemovedParams tells that there is a session no more.
type SessionRemovedParams struct {
	SessionID string `json:"sessionId"`
}

// Constraints tighten what a session or a call may do. What cannot be applied
// where it stands is an error, never ignored.
type Constraints struct {
	// Timeout bounds one call.
	Timeout Duration `json:"timeout,omitzero"`
	// MaxOutputBytes bounds what one command returns.
	MaxOutputBytes int64           `json:"maxOutputBytes,omitzero"`
	Filesystem     Filesystem      `json:"filesystem,omitzero"`
	Scope          ConstraintScope `json:"scope,omitzero"`

	// The rest makes something new, and stands on session/open and job/run only.

	Network     string   `json:"network,omitzero"`
	Memory      Size     `json:"memory,omitzero"`
	CPUs        float64  `json:"cpus,omitzero"`
	CPUTime     Duration `json:"cpuTime,omitzero"`
	Image       string   `json:"image,omitzero"`
	TmpfsNoexec *bool    `json:"tmpfsNoexec,omitzero"`
	Profile     string   `json:"profile,omitzero"`
}

// Filesystem is what commands may write.
type Filesystem string

// FilesystemReadOnly lets commands write to their private temporary directory
// only.
const FilesystemReadOnly Filesystem = "read_only"

// Values are all values of a filesystem constraint.
func (Filesystem) Values() []Filesystem { return []Filesystem{FilesystemReadOnly} }

// ConstraintScope says which calls a session's constraints apply to.
type ConstraintScope string

// The scopes.
const (
	ScopeTools ConstraintScope = "tools"
	ScopeJobs  ConstraintScope = "jobs"
	ScopeAll   ConstraintScope = "all"
)

// Values are all scopes.
func (ConstraintScope) Values() []ConstraintScope {
	return []ConstraintScope{ScopeTools, ScopeJobs, ScopeAll}
}
