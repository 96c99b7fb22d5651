package engine

import "time"

// PageSize is the size of a page of memory, in bytes.
const PageSize = 64 << 10

// Limits of an engine.
const (
	// MaxModule is the largest module file, in bytes: compiling takes forty times as
	// much memory for a while.
	MaxModule = 64 << 20
	// maxCompiled is how many compiled modules are kept in memory; those that nobody
	// runs go first. A Go program is 8 MB of machine code.
	maxCompiled = 32
	// maxCompiling is how many are compiled at once: each takes a processor and some
	// hundred megabytes. One that takes longer than soon makes room for others and is
	// among the slow, of which there are at most maxSlow more. The largest programs of
	// known compilers take a third of that time.
	maxCompiling = 2
	maxSlow      = 1
	soon         = 5 * time.Second
	// niceSlow is how far slow compilers stand back for all others.
	niceSlow = 19
	// maxSaid is how much of what a compiler prints is kept, in bytes.
	maxSaid = 64 << 10
	// MaxOutput bounds what a run may ask for, in bytes; it is a body.
	MaxOutput = 32 << 20
	// maxSpares is how many instances are made ahead, and spareFor how long one waits
	// for its run: an agent's turns are seconds apart, and a session uses few tools. Each
	// has the memory that its module begins with, of a Go program a megabyte.
	maxSpares = 4
	spareFor  = time.Minute
	// maxOpenFiles is how many files a guest may have open: an eighth of the usual
	// limit of a process.
	maxOpenFiles = 128
	// randomPiece is how many random bytes are made between two looks at the time.
	randomPiece = 1 << 20
	// maxDetail bounds the words about a trap, or about a module that is not compiled, in
	// bytes.
	maxDetail = 4 << 10
	// maxRequests is how many runs may wait for their turn.
	maxRequests = 256
	// lastRuns is how long guests may take to notice that the service is gone. The
	// next host call or the end of the slice is all that is needed; a guest that is
	// being compiled is not waited for.
	lastRuns = 2 * time.Second
	// heapLimit is what the collector aims to keep the engine's own memory below:
	// compiling takes some hundred megabytes for a moment, which must not stay.
	heapLimit = 512 << 20
	// dataBase and dataGuest bound the process's memory, in bytes: what compiling
	// needs, and for each guest its deepest stack beside its memory. dataCompiler is
	// that of a process that only compiles.
	dataBase     = 3 << 30
	dataGuest    = 768 << 20
	dataCompiler = dataBase
)

// What host functions cost their guest, in units of fuel.
const (
	// costCall is any call of a host function, costFile one that reaches a file
	// system: what a system call takes, in instructions.
	costCall = 64
	costFile = 1024
	// costPathByte is each byte of a path: it is copied and looked at several times,
	// and every second one may begin another directory. So is each byte of the path of an
	// open directory in which one is looked up.
	costPathByte = 16
	// costEntry is each entry of a directory that is read, and sorted, for a guest.
	costEntry = 256
)
