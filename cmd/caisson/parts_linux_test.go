package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker/confine/confinetest"
)

// The parts of this test program that start another one on a kernel that seems to
// be older than it is.
const (
	withoutLandlock   = "without-landlock"
	withoutCloseRange = "without-close-range" // before Linux 5.9
)

// playPart plays one of the parts of this test program. It returns false when it
// was started for none.
func playPart(args []string) bool {
	if len(args) < 2 {
		return false
	}
	var err error
	switch args[0] {
	case withoutLandlock:
		err = confinetest.WithoutLandlock()
	case withoutCloseRange:
		err = confinetest.Without(unix.SYS_CLOSE_RANGE, unix.SYS_CLOSE_RANGE)
	default:
		return false
	}
	if err == nil {
		err = syscall.Exec(args[1], args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, args[0]+":", err)
	os.Exit(1)
	return true
}
