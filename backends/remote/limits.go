package remote

import "time"

// Defaults of [Options].
const (
	// DefaultHandshakeTimeout is long enough for a worker that has to be started
	// on a loaded machine, and short enough to try again within a budget.
	DefaultHandshakeTimeout = 20 * time.Second
	// DefaultConnectBudget is how long a call waits for a connection at most.
	DefaultConnectBudget = 60 * time.Second
	// DefaultPatience is how long it waits while the environment cannot be
	// attached to: a person learns within 3 s that an engine is not there.
	DefaultPatience = 2 * time.Second
	// DefaultShutdownBudget is used for a profile without a shutdown timeout.
	DefaultShutdownBudget = 60 * time.Second
)

const (
	// firstBackoff and maxBackoff are the waits between attempts to connect:
	// they double from the one to the other, each with a random part.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = 2 * time.Second
	// steady is how long a connection must last to be made again at once when it is lost
	// and nobody waits for it. Before the next of those that are lost sooner, one after
	// the other, there is a rest that doubles from firstBackoff up to maxRest: a far end
	// that dies of each connection is else started many times a second.
	steady  = 10 * time.Second
	maxRest = time.Minute
	// lookAgain is when whoever has lost patience looks again whether the
	// environment can be attached to, where the answer was not in yet.
	lookAgain = 100 * time.Millisecond
	// removeBudget is how long the removal of what a failed Open created may
	// take.
	removeBudget = 60 * time.Second
	// upgradeTimeout bounds the move to a shared socket, with the handshake there, which
	// is a matter of microseconds where it works.
	upgradeTimeout = 5 * time.Second
	// maxWaiting bounds the connections to a shared socket whose proof is awaited: the
	// worker's, and those of commands that try. maxGuests is how many may come in all.
	maxWaiting = 64
	maxGuests  = 4096
	// requestTimeout bounds requests that have no timeout of their own: about
	// processes, files and exports. Waits that were asked for come on top.
	requestTimeout = 60 * time.Second
	// programGrace is what a program may take beyond its own timeout to end by it
	// and answer.
	programGrace = 5 * time.Second
	// jobGrace is what a job may take beyond its own timeout to be ended, and for
	// what it left to be collected.
	jobGrace = 60 * time.Second
	// probeGrace is how long a probe that is out of time waits for a late answer.
	probeGrace = time.Second
	// quiesceTimeout is how long calls in flight may take to end when the
	// environment is let go of.
	quiesceTimeout = 5 * time.Second
	// shutdownTries is how often a worker is asked to end whose connection is lost
	// before it has: killed once is an accident, twice a decision.
	shutdownTries = 2
	// shutdownConnects is how often it is connected to for the second time of asking:
	// for a second at most, beside what each takes.
	shutdownConnects = 5
	// closeTimeout bounds the export/close that ends every export, and closePatience how
	// long anybody waits for that: what was exported is there, and all that an export
	// that stays open costs is room at the far end. maxClosing is how many may be
	// open so; more are left to the end of the connection.
	closeTimeout  = 10 * time.Second
	closePatience = 2 * time.Second
	maxClosing    = 64

	// maxTracked is from how many processes on those that have ended are
	// forgotten, and sweepEvery how many come in between two looks for them.
	maxTracked = 4096
	sweepEvery = 512
	// maxTrackedCommand is how much is kept of a process's command, of its
	// arguments, its directory and its error, in bytes, and maxTrackedWord of each
	// other text: they are what is told of a process that was lost.
	maxTrackedCommand = 4 << 10
	maxTrackedWord    = 256
	// maxProcesses is how many records a list of processes may hold.
	maxProcesses = 10_000
	// maxTools is how many tools an environment may offer.
	maxTools = 1000

	// defaultRead is how much process output one read returns when nothing is
	// said, in bytes; maxRead is the most, and maxTextRead the most from a peer that
	// sends text, whose escaped form must fit into a frame.
	defaultRead = 32 << 10
	maxRead     = 16 << 20
	maxTextRead = 2 << 20
	// maxJobFiles is how many files a job may leave.
	maxJobFiles = 10_000
	// maxExport is the largest export, in bytes.
	maxExport = 256 << 20

	// The output of a process that has ended is looked at after settleFirst, and
	// then after waits that double up to settleMax, until it stops growing.
	settleFirst = 100 * time.Millisecond
	settleMax   = 5 * time.Second
)
