package rpc

import "time"

// Limits of one connection.
const (
	// maxRequests is how many requests are worked on at once. One more is
	// answered with overloaded: an agent's calls are commands that compete for
	// the same processors, and 64 of them keep any machine busy.
	maxRequests = 64
	// maxWaits is how many requests may wait at once for something to happen
	// elsewhere (process/wait and its like, and what must get through when all
	// slots are taken, such as process/stop). They hold no slot and cost a
	// goroutine each.
	maxWaits = 1024
	// maxOffered is how many tools a client may offer to the programs of a session.
	maxOffered = 128
	// maxProgramMs is the protocol's longest timeout, in milliseconds.
	maxProgramMs = 2147483647
	// maxBacklog is how many bytes may wait to be written before new requests
	// are answered with overloaded: a client that reads no answers gets none.
	maxBacklog = 64 << 20
	// maxAnswers bounds the bytes of large answers that are being made or wait to
	// be written, all together: a request waits, in its slot, until its answer
	// has room. A larger answer has room when it is alone.
	maxAnswers = 64 << 20
	// smallAnswer is the largest answer that is not counted: as many as there
	// are slots take 4 MiB.
	smallAnswer = 64 << 10
	// maxInline is the longest parameters, in bytes, that are decoded by the
	// goroutine that reads.
	maxInline = 8 << 10
	// quickRequest is how soon a request must have been over for the next one of
	// its kind to be worked on by the goroutine that reads: to start another one
	// takes up to half of that where processors are busy or asleep. A small read in
	// a container is within it. What comes meanwhile waits as long.
	quickRequest = 500 * time.Microsecond
	// maxSpare is how many goroutines wait to read on: two take turns where one
	// request comes at a time.
	maxSpare = 4
	// maxDroppable is how many messages may wait to be written before log
	// lines and traces, which nobody misses, are dropped.
	maxDroppable = 1000
	// maxUnread and maxUnreadBytes are how many messages, and bytes of
	// notifications, may wait to be written. Beyond that an environment's events of
	// processes wait where they come from, so that a flood of them does not fill the
	// queue, which would disconnect the client. Nothing waits for a client that has
	// read nothing for as long as deafAfter.
	maxUnread      = 1000
	maxUnreadBytes = 8 << 20
	deafAfter      = 10 * time.Second
	// cancelGrace is how long a cancelled request may take to stop before its
	// outcome is called unknown. The worker's protocol has the same figure.
	cancelGrace = 35 * time.Second
	// shutdownBudget bounds the end of a connection as a whole: environments
	// are detached, calls end. With the watch on the client's process the
	// service is gone within 10 s of its client.
	shutdownBudget = 7 * time.Second
	// flushBudget is how long, at the very end, a client may still read answers.
	flushBudget = time.Second
	// watchInterval is how often it is looked whether the client's process
	// still lives; the protocol promises 2 s.
	watchInterval = time.Second
	// maxSubscriptions is how many processes one connection may be subscribed
	// to; each may hold protocol.MaxSubscriptionBytes.
	maxSubscriptions = 256
	// outputChunk is the most output that one process/output carries, in bytes:
	// large enough to be fast, small enough that a change is not held up.
	outputChunk = 512 << 10
)
