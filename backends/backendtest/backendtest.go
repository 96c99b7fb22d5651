// Package backendtest is the behaviour that every backend must show, as one
// suite of tests. A backend's own test hands [Run] a [Harness]; what the
// environment behind it cannot do is said there, in words, and the suite then
// tests that the lack is answered as it must be instead of passing it over.
//
// The suite speaks to the interfaces of package backends only, and to the tools
// by their contract. Command lines are POSIX shell with what every busybox has.
package backendtest

import (
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// patience is how long the suite waits for what must happen. Nothing is slow
// because of it: it ends a test that would hang.
const patience = 60 * time.Second

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
	// Outside is a directory outside the workspace, as paths in the environment
	// see it, that the environment's user may write when nothing confines it.
	Outside func(t *testing.T) string
	// Leftovers lists what is still there of an environment, its files in the
	// binding's directories aside: processes, containers, volumes, sockets. It
	// is asked after the environment was removed, and repeatedly, since the end
	// of a process takes its time.
	Leftovers func(t *testing.T, b backends.Binding) []string
	// Vanish makes the provisioned environment disappear behind the backend's
	// back, as a person who removes a container by hand would. It is called
	// after a Shutdown and Detach, or while sessions are in a shared environment.
	Vanish func(t *testing.T, b backends.Binding)
	// Lacks says what the environment cannot do.
	Lacks Lacks
}

// Lacks holds a reason for each thing that an environment does not have; an
// empty string means that it has it and is tested for it.
type Lacks struct {
	// Commands: anything that runs programs of the environment. The tools of
	// commands are not described then, and Shell and Git are lacking too.
	Commands string
	// Shell: bash and process/start with a shell line. The lack must be
	// answered by unsupported errors that name the shell.
	Shell string
	// Git: the git tool. The lack must be answered by a refusal that names git.
	Git string
	// Landlock: confined commands. The lack must be answered by an unsupported
	// error that names Landlock; everything else then runs unconfined.
	Landlock string
	// Reattach: an environment that outlives the backend value that opened it.
	// The lack must be answered by environmentLost.
	Reattach string
	// Shared: an environment of several sessions at once. The lack must be
	// answered by a refusal of profiles that ask for it.
	Shared string
	// Jobs: job/run. The lack must be answered by an unsupported error that names
	// jobs.
	Jobs string
	// Packs: tool packs. The lack must be answered by an unsupported error of the
	// opening, which names the pack.
	Packs string
}

// need is a set of what a test cannot do without.
type need uint8

const (
	needShell need = 1 << iota
	needGit
	needLandlock
	needReattach
	needShared
	needJobs
	needPacks
)

// missing is why the environment does not have all of n, or "".
func (l Lacks) missing(n need) string {
	var why []string
	for _, m := range []struct {
		need   need
		reason string
	}{{needShell, l.Shell}, {needGit, l.Git}, {needLandlock, l.Landlock}, {needReattach, l.Reattach}, {needShared, l.Shared}, {needJobs, l.Jobs}, {needPacks, l.Packs}} {
		if n&m.need != 0 && m.reason != "" {
			why = append(why, m.reason)
		}
	}
	return strings.Join(why, "; ")
}

// test is one part of the suite. Its world is open unless it is closed.
type test struct {
	name   string
	needs  need
	closed bool
	run    func(w *world)
}

// Run runs the suite. Each part has an environment of its own, which must be
// gone without a trace when it is over.
func Run(t *testing.T, h Harness) {
	t.Helper()
	if h.Backend == nil || h.Profile == nil || h.Outside == nil || h.Leftovers == nil || h.Vanish == nil {
		t.Fatal("backendtest: a harness needs Backend, Profile, Outside, Leftovers and Vanish")
	}
	for _, part := range [][]test{
		fileTests(), pathTests(), searchTests(), commandTests(), processTests(),
		confinementTests(), exportTests(), lifeTests(), loadTests(), sharedTests(), jobTests(), packTests(),
	} {
		for _, tt := range part {
			t.Run(tt.name, func(t *testing.T) {
				if why := h.Lacks.missing(tt.needs); why != "" {
					t.Logf("not asked of this environment, which is tested for the lack instead: %s", why)
					return
				}
				w := newWorld(t, h)
				if !tt.closed {
					w.open()
				}
				tt.run(w)
			})
		}
	}
	t.Run("Lacks", func(t *testing.T) { testLacks(t, h) })
}
