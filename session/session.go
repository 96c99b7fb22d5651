// Package session holds what an editor works in: sessions, each bound for good
// to one execution environment. It opens, resumes, closes and deletes them,
// keeps their bindings on disk, routes tool calls, file accesses and processes
// to their environments, and tells a [Sink] what happened.
//
// A session, its opening, life and end are in session.go, open.go, plan.go, live.go
// and lifetime.go. Its environments are places, in place.go and the files beside it
// that begin alike; so are calls, jobs, processes and plugins. admit.go asks the guard.
//
// It speaks no editor protocol and knows no kind of environment: the first is
// the room rpc, the second the rooms under backends.
package session

import (
	"context"
	"time"

	"github.com/caisson-dev/caisson/artifacts"
	"github.com/caisson-dev/caisson/backends/tool"
)

// State is where a session is in its life.
type State string

// The states.
const (
	// StateBound is a session whose binding is saved and whose environment
	// this service has not opened yet. The first call opens it.
	StateBound        State = "bound"
	StateConnecting   State = "connecting"
	StateReady        State = "ready"
	StateDisconnected State = "disconnected" // the next call reconnects
	// StateClosed is a session that was closed. Opening it by its id resumes
	// it when its environment was kept.
	StateClosed State = "closed"
	StateFailed State = "failed" // its environment will not come back
)

// valid reports whether s is one of the states.
func (s State) valid() bool {
	switch s {
	case StateBound, StateConnecting, StateReady, StateDisconnected, StateClosed, StateFailed:
		return true
	}
	return false
}

// Session is a snapshot of one session.
type Session struct {
	ID string
	// Workspace is the URI of the opened folder, "" for a session that belongs
	// to no folder.
	Workspace     string
	Profile       string
	Backend       string
	EnvironmentID string
	// Root is the workspace as paths in the environment see it; "" until the
	// environment was opened once.
	Root       string
	State      State
	Shared     bool
	Persistent bool
	ParentID   string
	CreatedAt  time.Time
	LastUsedAt time.Time
	Labels     map[string]string
	// HeldBy is the process id of another service that has the session open, 0 for none.
	// What becomes of it there only that one knows: State is as it was saved.
	HeldBy int
	// Err says why, for StateDisconnected and StateFailed; else nil.
	Err error
}

// OpenRequest asks for a session.
type OpenRequest struct {
	// SessionID resumes the session of that id, or names the new one; "" makes
	// an id. One path component of at most 64 letters, digits, "_", "-" and ".".
	SessionID string
	// Workspace is the file URI or absolute path of the opened folder; "" is a
	// session that belongs to no folder, which is local unless it names a profile.
	Workspace string
	// Profile names the profile of a new session; "" is the configured default.
	// For a session that exists it must be empty or the profile it has.
	Profile string
	// Constraints tighten a new session for good.
	Constraints Constraints
	// Labels are kept with the session and never interpreted: at most 32, of at
	// most 256 bytes each.
	Labels map[string]string
	// Deferred saves the binding without opening the environment: "connect": false.
	Deferred bool
	// alone makes a session of one environment, whatever the overrides.
	alone bool
}

// Filter says which sessions List returns; its zero value means all.
type Filter struct {
	State State
	// Labels must all be on the session with these values.
	Labels map[string]string
}

// Sink is told what happens. Its methods are called from many goroutines, one
// session's in the order of what happened, and must not block but for Room.
type Sink interface {
	// SessionChanged tells of a session of this service's.
	SessionChanged(Session)
	// SessionSeen tells of another one that was made or changed, and SessionRemoved of
	// any that was deleted; of other services' only once somebody follows them.
	SessionSeen(Session)
	SessionRemoved(id string)
	ExecutionStarted(Execution)
	ExecutionCompleted(Execution)
	ExecutionFailed(Execution)
	Process(ProcessEvent)
	// Room waits until there is room for another event of a process, or ctx is done.
	// So an environment with more events than the client takes waits for it, and the
	// other environments do not.
	Room(ctx context.Context)
	ArtifactPublished(artifacts.Artifact, artifacts.Preview)
	// ArtifactsChanged tells that the list of artifacts has changed, whoever did it;
	// only once somebody follows.
	ArtifactsChanged()
	// ConfigChanged tells that the user's file has changed. Err is what
	// is wrong with it, or nil; sessions that exist keep what they are bound to.
	ConfigChanged(err error)
}

// Tool is one tool that a session offers.
type Tool struct {
	tool.Description
	// Profile is the profile whose environment runs it.
	Profile string
}

// ProfileInfo describes one profile of the user's configuration.
type ProfileInfo struct {
	Name    string
	Backend string
	Summary string
	// Problem is why a session on it cannot be opened; nil for a valid one.
	Problem error
}

// BackendInfo says what this build and this machine can do with one backend.
type BackendInfo struct {
	Kind string
	// Built says that this build has the backend.
	Built bool
	// Usable says that it can be used now.
	Usable bool
	// Detail is what was found, in one sentence, and Hint what to do about it.
	Detail string
	Hint   string
}

// PruneRequest bounds what Prune removes.
type PruneRequest struct {
	// Backend is the one kind to look at; "" means all.
	Backend   string
	DryRun    bool
	OlderThan time.Duration
	// Unreached is told of each engine or machine that could not be looked at, and
	// why. That is no failure. Nil is allowed.
	Unreached func(place string, err error)
}
