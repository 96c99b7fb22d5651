package worker

import "time"

const (
	// handshakeTimeout is how long a connection may take to initialize: who does
	// not is no host, and must neither hold a place nor keep the worker alive.
	handshakeTimeout = 20 * time.Second
	// maxConnections is how many connections a worker serves at once. A host has
	// two while it moves to the shared socket, and a dead one may linger.
	maxConnections = 32
	// maxRefusals is how many connections are told at once that they are refused; who
	// comes on top, as a command can, is hung up on without a word. refusalTimeout is
	// how long one may take to ask.
	maxRefusals    = 4
	refusalTimeout = 5 * time.Second
	// maxUnknown is the longest first request, in bytes, that is read of a peer that is
	// refused and may be a command: a host's without much in its variables.
	maxUnknown = 64 << 10
	// goodbye is how long, after a shutdown request was answered, the worker
	// waits for the host to take the answer and hang up.
	goodbye = time.Second
	// predecessorSlack is what a worker waits for the end of the one before it
	// beyond that one's shutdown timeout.
	predecessorSlack = 2 * time.Second
	// acceptPause is the pause after a failed accept, which is mostly a lack of
	// descriptors.
	acceptPause = 50 * time.Millisecond
	// lookInterval is how often the worker looks whether its socket is still in its
	// place.
	lookInterval = 5 * time.Second
	// largeRead is from where on, in bytes, output is read into a buffer that is used
	// again: whoever follows an output would else cause a garbage collection every
	// few reads.
	largeRead = 32 << 10
	// sendBuffer is what a socket takes of us before its peer reads, in bytes, as the kernel
	// counts: about two pieces of a body.
	sendBuffer = 1 << 20
	// maxVariables bounds the variables of a session, maxVariableBytes their
	// text: what fits beside the arguments of a command on Linux.
	maxVariables     = 4096
	maxVariableBytes = 1 << 20
)
