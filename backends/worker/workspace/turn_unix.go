//go:build unix

package workspace

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// turnWait is how long a writer waits for its turn, which others of us have for far
	// less than a millisecond each: a lock that lasts is a stranger's.
	turnWait = time.Second
	turnPoll = time.Millisecond
)

// turn waits until no other writer of us, in this process or another, puts a file in its
// place in the directory, and lets none do so until done is called. Whoever cannot have
// the directory to itself writes all the same: a file system has no locks, or a command
// holds one.
func turn(parent *os.Root) (done func()) {
	dir, err := parent.Open(".")
	if err != nil {
		return func() {} // it can be written and not read
	}
	done = func() { _ = dir.Close() } // it was only locked, and the lock goes with it
	free := func() bool { return !errors.Is(unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) }
	if free() {
		return done
	}
	// To wait in flock could not be given up.
	patience := time.NewTimer(turnWait)
	defer patience.Stop()
	tick := time.NewTicker(turnPoll)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if free() {
				return done
			}
		case <-patience.C:
			return done
		}
	}
}
