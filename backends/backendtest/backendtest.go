// Package backendtest is the behaviour that every backend must show, as one
// suite of tests. A backend's own test hands [Run] a [Harness]; what the
// environment behind it cannot do is said there, in words, and the suite then
// tests that the lack is answered as it must be instead of passing it over.
package backendtest

import (
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// Harness is one backend with the kind of environment to try it on.
type Harness struct {
	// Backend makes a new value of the backend, as a service that was just
	// started would: it shares no memory with the earlier ones. What it starts
	// on this side it ends by t.Cleanup.
	Backend func(t *testing.T) backends.Backend
	// Profile makes the profile, defaults filled in, for the permission modes
	// given: the mode of a call that says nothing, and the ceiling.
	Profile func(t *testing.T, mode, ceiling tool.Mode) profile.Profile
	// WorkspaceFolder says that the environment works in the opened folder of
	// the host, as local does. The suite then hands it a fresh one.
	WorkspaceFolder bool
	// Lacks says what the environment cannot do.
	Lacks Lacks
	// Leftovers lists what is still there of an environment on this side of the
	// world (processes, containers, volumes, sockets), for the tests that ask
	// that nothing is. Nil when the backend has no such thing.
	Leftovers func(t *testing.T, b backends.Binding) []string
	// Vanish makes the provisioned environment disappear behind the backend's
	// back, as a person who removes a container by hand would.
	Vanish func(t *testing.T, b backends.Binding)
}

// Lacks holds a reason for each thing that an environment does not have; an
// empty string means that it has it and is tested for it.
type Lacks struct {
	// Shell: bash, process/start with a shell line and everything that the
	// suite does with them. The lack must be answered by unsupported errors.
	Shell string
	// Git: the git tool. The lack must be an answer that names git.
	Git string
	// Landlock: confined commands. The lack must be an unsupported error; the
	// suite then runs commands unconfined.
	Landlock string
	// Reattach: an environment that outlives the backend value that opened it.
	Reattach string
	// Processes: background processes. The lack must be unsupported errors.
	Processes string
}

// Run runs the suite. Every test has an environment of its own.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Backend == nil || h.Profile == nil {
		t.Fatal("backendtest: a harness needs Backend and Profile")
	}
}
