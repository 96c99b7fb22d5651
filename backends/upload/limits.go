package upload

import "time"

const (
	// MaxBytes is how much one folder may hold, ignored files aside: several
	// times a large repository with its history, and half a minute on a fast
	// link. What is larger is data that somebody forgot to ignore, or better
	// mounted.
	MaxBytes = 2 << 30
	// MaxEntries is how many files, directories and links there may be: each
	// takes an environment a file of its own to make.
	MaxEntries = 250_000
	// maxDepth is how deep directories may lie in each other; each is open while
	// what is below it is read.
	maxDepth = 256
	// progressInterval keeps the progress to what a person reads.
	progressInterval = 500 * time.Millisecond
	// copyBuffer is the piece of a file that is on its way.
	copyBuffer = 256 << 10
)
