//go:build !linux

package supervise

// unblocked is start: a worker that commands are started by is on Linux.
func unblocked(start startFunc) startFunc { return start }
