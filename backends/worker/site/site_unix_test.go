//go:build unix

package site

import (
	"testing"

	"golang.org/x/sys/unix"
)

// pipe makes a named pipe.
func pipe(t *testing.T, path string) {
	t.Helper()
	check(t, unix.Mkfifo(path, 0o600))
}
