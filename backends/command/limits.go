package command

import "time"

const (
	// DefaultHandshakeTimeout is how long an adapter may take to answer
	// initialize: it may have a machine to start.
	DefaultHandshakeTimeout = 45 * time.Second
	// connectSlack is what a connect may take beyond the handshake: the start of
	// the program, and the end of the one before.
	connectSlack = 15 * time.Second
	// silentGrace is how long an adapter that never said anything may take to exit:
	// it has nothing to end.
	silentGrace = 2 * time.Second
	// defaultShutdown is the protocol's budget of an adapter, for a profile that
	// names none.
	defaultShutdown = 60 * time.Second
	// checkTimeout bounds how long a check waits for an answer.
	checkTimeout = 10 * time.Second
	// exitWait is how long the end of the output waits for the exit that explains
	// it.
	exitWait = 2 * time.Second

	// stderrBytes is how much of what an adapter prints to standard error is kept
	// for errors.
	stderrBytes = 8 << 10
	// minSecret is the shortest value that is taken out of it, in bytes: to take
	// every "1" out would hide everything and nothing.
	minSecret = 4
)
