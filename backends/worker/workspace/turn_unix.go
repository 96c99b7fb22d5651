//go:build unix

package workspace

import (
	"os"
	"time"

	"github.com/caisson-dev/caisson/diskfile"
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
	free := func() bool {
		taken, err := diskfile.TryLock(dir)
		return taken || err != nil
	}
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
