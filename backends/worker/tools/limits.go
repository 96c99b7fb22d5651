package tools

import (
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// The limits of the workspace tools. A page is as much as a model can use at
// once; there is always a next one.
const (
	// DefaultOutputBytes bounds stdout and stderr of a command together when
	// nobody says otherwise.
	DefaultOutputBytes = 256 << 10
	// maxEncoded bounds what content takes in a result once it is encoded as
	// JSON, which can be six times its size. What is left of a result's limit
	// is for everything beside.
	maxEncoded = tool.MaxResultBytes - 512<<10
	// maxOutputBytes bounds the output that can be asked for.
	maxOutputBytes = 1 << 20

	// defaultReadLines and defaultReadBytes make a page of read_file, and
	// maxReadBytes one for which the caller named a limit.
	defaultReadLines = 2000
	defaultReadBytes = 256 << 10
	maxReadBytes     = 1 << 20
	// maxImageBytes is what fits into a result's inline data as base64.
	maxImageBytes = tool.MaxInlineBytes / 4 * 3
	// maxHashed and maxCounted bound the files whose hash and lines are told
	// although only a part is read: longer ones would make the caller wait.
	maxHashed  = 64 << 20
	maxCounted = 256 << 20
	// readChunk is how much of a file is in memory at a time.
	readChunk = 256 << 10
	// sniffBytes is how much of a file is looked at to tell what it is.
	sniffBytes = 8 << 10

	// maxEditBytes bounds a file that is edited, as it is held in memory twice.
	maxEditBytes = 64 << 20
	// maxDiffInput bounds the part of a file that is compared for a diff, and maxDiff
	// the diff: one that is longer is not read.
	maxDiffInput = 4 << 20
	maxDiff      = 64 << 10
	// maxHints is how many places are named when an edit is not unique.
	maxHints = 10
	// editTries is how often an edit starts again when somebody else changes the
	// file meanwhile.
	editTries = 10
	// writeLocks is how many writes may go on at once.
	writeLocks = 32

	// pageEntries, pagePaths and pageLines are the pages of list_files, of glob
	// and grep for files, and of grep for lines, and pageBytes bounds each.
	pageEntries = 1000
	pagePaths   = 1000
	pageLines   = 250
	pageBytes   = 128 << 10
	// maxOffset keeps sums of offsets and limits within an int.
	maxOffset = 1 << 40

	// minTimeout, maxTimeout and defaultTimeout bound bash, in seconds.
	minTimeout     = 1
	maxTimeout     = 3600
	defaultTimeout = 300
	// maxCommand bounds a command line and all of git's arguments together, in
	// bytes: Linux takes no longer argument.
	maxCommand = 128 << 10
	// maxGitArgs bounds the number of git's arguments.
	maxGitArgs = 4096
	// maxWait bounds one wait for a process, in milliseconds.
	maxWait = 60_000
	// defaultTail is how much output of a process a read without a place returns,
	// and maxProcessBytes the most that any returns.
	defaultTail     = 32 << 10
	maxProcessBytes = 256 << 10

	// MaxExportBytes is the size of the largest file that can be presented.
	MaxExportBytes = 256 << 20
	// maxExports and maxExportTotal bound the snapshots that wait to be fetched.
	maxExports     = 1024 // some jobs' files; each is an open file
	maxExportTotal = 1 << 30
	// lostExport is from when on a snapshot that nobody reads is taken for lost where
	// there is no room for another: a host may fetch a job's files one after another
	// over a slow line.
	lostExport = time.Hour
	// copyChunk is how much of a snapshot is copied before cancellation is looked for.
	copyChunk = 8 << 20
)
