//go:build unix && !linux

package main

import "syscall"

// groupRuns reports whether there is a process of the group, one too that has ended and
// was not reaped yet.
func groupRuns(group int) bool { return syscall.Kill(-group, 0) == nil }
