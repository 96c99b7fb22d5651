package process

import "time"

// Limits. Exported ones are part of what callers are promised.
const (
	// DefaultMaxOutputBytes bounds the output of a foreground command when
	// nobody says otherwise.
	DefaultMaxOutputBytes = 1 << 20
	// KeepOutput is how many of its last output bytes are kept of a process.
	KeepOutput = 64 << 20
	// DefaultReadBytes is what Read returns when it is not told how much, and
	// MaxReadBytes the most that it ever returns: one piece of bulk data.
	DefaultReadBytes = 32 << 10
	MaxReadBytes     = 1 << 20
	// MaxReadWait bounds one wait for output.
	MaxReadWait = 60 * time.Second
	// MaxWriteBytes is the most that one Write takes.
	MaxWriteBytes = 16 << 20
	// MaxLive is how many background processes run at once, MaxKept how many
	// ended ones are remembered; the oldest is cleaned up first.
	MaxLive = 256
	MaxKept = 256
	// MaxKeptOutput bounds the output on disk of all ended processes together.
	MaxKeptOutput = 1 << 30
	// TermGrace is how long a process may take to end after SIGTERM, KillGrace
	// after SIGKILL.
	TermGrace = 2 * time.Second
	KillGrace = 2 * time.Second
	// DrainGrace is how long a foreground command's output is still awaited
	// after it ended: somebody else may hold its pipes for ever.
	DrainGrace = 100 * time.Millisecond
)
