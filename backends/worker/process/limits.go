package process

import "time"

// Limits that callers are promised.
const (
	// DefaultMaxOutputBytes bounds the output of a foreground command that does not
	// say.
	DefaultMaxOutputBytes = 1 << 20
	// KeepOutput is how many of its last output bytes are kept of a process.
	KeepOutput = 64 << 20
	// DefaultReadBytes is what Read returns when it is not told how much, and
	// MaxReadBytes the most that it ever returns: one piece of bulk data.
	DefaultReadBytes = 32 << 10
	MaxReadBytes     = 1 << 20
	// MaxReadWait bounds one wait for output.
	MaxReadWait = 60 * time.Second
	// MaxWriteBytes is the most that one Write takes, and MaxWriteWait how long
	// it waits for the process to take it.
	MaxWriteBytes = 16 << 20
	MaxWriteWait  = 60 * time.Second
	// MaxLive is how many commands run at once, MaxKept how many ended
	// background ones are remembered, give or take a few; the oldest is cleaned
	// up first.
	MaxLive = 256
	MaxKept = 256
	// MaxKeptOutput bounds the output on disk of all ended processes together.
	MaxKeptOutput = 1 << 30
	// TermGrace is how long a process may take to end after SIGTERM, KillGrace
	// after SIGKILL.
	TermGrace = 2 * time.Second
	KillGrace = 2 * time.Second
	// DrainGrace is how long more output is still awaited after a foreground
	// command ended: somebody else may hold its pipes for ever. What it wrote itself
	// is read in any case.
	DrainGrace = 100 * time.Millisecond
)

const (
	// maxLine is Linux's bound of one argument (MAX_ARG_STRLEN), less the NUL.
	maxLine = 128<<10 - 1
	// ringSize is what output takes on disk: what is kept, and room for what is
	// being written while somebody reads the oldest bytes.
	ringSize = KeepOutput + 8<<20
	// maxPiece is the most that is moved from a pipe at once, and what a pipe
	// may hold: the kernel's limit for users without privileges.
	maxPiece = 1 << 20
	// rushPieces pieces that follow on one another within rushInterval are a rush:
	// then pieces below rushPiece bytes are gathered for rushPause, in which the
	// fastest writers fill half of maxPiece.
	rushPieces   = 8
	rushInterval = time.Millisecond
	rushPiece    = 256 << 10
	rushPause    = 200 * time.Microsecond
	// restPieces are what a full pipe can be, at the ring's end: more is still being
	// written, by somebody who outlived the process.
	restPieces = 3
	// copySize is the buffer for output that cannot be spliced.
	copySize = 32 << 10
	// memoryOutput is how much merged output of a foreground command waits in
	// memory for an adoption that mostly never comes.
	memoryOutput = 256 << 10
	// attention is for how long a thread waits for the end of a process that was just
	// started. A cancelled command is killed that much later at most.
	attention = 10 * time.Millisecond
	// settleGrace is how long the end of a process waits for the end of its
	// output, so that both make one event. They come together unless somebody
	// else holds the pipe.
	settleGrace = 2 * time.Millisecond
	// deniedGrace is how long a failed confined command's output is awaited to
	// look for a refusal in it, and deniedTail how much of its end is looked at.
	deniedGrace = 50 * time.Millisecond
	deniedTail  = 16 << 10
	// pollFirst and pollLast bound how often a process group that outlives its
	// leader is looked at; the kernel has no event for its end.
	pollFirst = 2 * time.Millisecond
	pollLast  = 50 * time.Millisecond
	// oomScore is how much sooner than by their size commands are ended where memory is
	// short: all that can be said. In a container of 20 MB the worker is most of it.
	oomScore = "1000"
	// reapDelay is how long orphans are collected before they are reaped, and how long
	// a command runs at most before its orphans are listened for.
	reapDelay = 100 * time.Millisecond
	// maxCapture bounds what a foreground command may ask to have returned.
	maxCapture = 64 << 20
	// maxRecord bounds a record in the journal: a shell line, escaped, and the
	// rest. minCompact is from where on the journal is compacted.
	maxRecord  = 1 << 20
	minCompact = 1 << 20
	// maxSmall bounds what is read of the registry's files of one value each.
	maxSmall = 1 << 10
)
