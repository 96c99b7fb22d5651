package job

import "time"

const (
	// maxFiles is how many files a job may leave, and maxBytes how many bytes they
	// may have together: what may wait to be fetched. One alone is bounded as every
	// artifact is.
	maxFiles = 256
	maxBytes = 1 << 30
	// maxEntries is how many files and directories are looked at to find those.
	maxEntries = 100_000
	// maxDepth is how deep directories are looked into.
	maxDepth = 100
	// nameLength is that of a directory's name: 80 random bits.
	nameLength = 16
	// maxTries is how often another directory is made where somebody takes one
	// away.
	maxTries = 8
	// unlockedAge is from when on a directory without a lock was left by a crash,
	// and is not about to get one.
	unlockedAge = time.Minute
)
