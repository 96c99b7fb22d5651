//go:build unix

package eventlog

import (
	"os"

	"github.com/caisson-dev/caisson/diskfile"
)

// movesOpenFiles says that a file can be moved while it is open.
const movesOpenFiles = true

// mover takes the file's lock until it is closed, and reports false when another
// service has it. Where files have no locks nobody has it.
func mover(f *os.File) bool {
	free, err := diskfile.TryLock(f)
	return free || err != nil
}
