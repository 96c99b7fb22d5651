package wasm

import "time"

const (
	// cancelGrace is how long the engine may take to end a run that was cancelled
	// before it is killed: a guest is asked at the end of each slice of fuel, every
	// few milliseconds.
	cancelGrace = 3 * time.Second
	// startTimeout bounds the engine's start; it takes some milliseconds.
	startTimeout = 15 * time.Second
	// stopGrace is how long the engine may take to end by itself. It gives its
	// guests two seconds.
	stopGrace = 4 * time.Second
	// waitTime is what a call may take beside its own time: for its turn, for the
	// engine's start and for the compiling of a module as large as there may be.
	waitTime = 2 * time.Minute
	// compileTime is what compiling a module may take: several times as long as the
	// largest one does, and less than anybody waits for it.
	compileTime = 90 * time.Second
	// exitWait is how long the exit of an engine is waited for whose streams have
	// ended.
	exitWait = time.Second
	// oomScore is how much sooner than others the engine is ended where memory is
	// short: half of all that can be said.
	oomScore = "500"
	// maxSaid is how much of what the engine says on standard error is kept, in
	// bytes: the first lines of a crash tell its reason.
	maxSaid = 4 << 10
	// maxLastWords is how much of a guest's standard error stands in an error, in
	// bytes.
	maxLastWords = 512
	// maxModules is how many hashes of module files are remembered.
	maxModules = 64
	// staleAge is how long an entry of a cache of another version is kept.
	staleAge = 7 * 24 * time.Hour
)
