package supervise

import "time"

const (
	// startTimeout bounds the start of a worker until it listens. A worker is
	// there in some 20 ms; one that waits for the end of its predecessor takes
	// up to that one's shutdown budget.
	startTimeout = 15 * time.Second
	// arrivalTime is how long at least the first attach is awaited: an engine on a busy
	// machine takes seconds from the start of a container to that of a program in it.
	arrivalTime = 15 * time.Second
	// startTries is how many workers are started when the first dies before
	// somebody has reached it. One that cannot start at all fails as often, in
	// milliseconds.
	startTries = 2
	// drainTimeout is how long Attach waits, after its input has ended, for the
	// worker to answer what it still can: the protocol's grace for a cancelled
	// call.
	drainTimeout = 35 * time.Second
	// controlTimeout bounds one exchange on the control socket, a start included.
	controlTimeout = startTimeout + 5*time.Second
	// initInterval is how often Attach looks for an init that does not listen yet,
	// which takes it some 10 ms from its start.
	initInterval = 5 * time.Millisecond
	// maxControls is how many exchanges on the control socket go on at once.
	maxControls = 32
	// maxControl is the longest message on the control socket in bytes: the
	// flags of a worker.
	maxControl = 256 << 10
	// killTimeout bounds how long the processes of a dead worker are hunted: a
	// killed process is gone in milliseconds unless the kernel holds it.
	killTimeout = 4 * time.Second
	// killInterval is how often that hunt looks again.
	killInterval = 20 * time.Millisecond
	// terminateSlack is what a worker gets beyond its own shutdown budget.
	terminateSlack = time.Second
	// workerThreads are on stock in a worker in the background: 64 calls of all kinds at once
	// have it use 24 threads. initThreads are in its first process, which comes to 14.
	workerThreads = 40
	initThreads   = 20
	// maxLog is the size of a worker's log in bytes beyond which the next worker
	// moves it aside, and the most that one worker writes.
	maxLog = 1 << 20
	// maxQuote is how much of a failed worker's last words an error quotes.
	maxQuote = 2 << 10
	// copyBuffer is the size of Attach's reads: as much as a pipe holds by
	// default on its way through an engine, several times over.
	copyBuffer = 256 << 10
)
