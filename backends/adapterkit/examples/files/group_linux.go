package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// groupRuns reports whether a process of the group runs. One that has ended and was not
// reaped yet does not: whoever adopted it may take his time, and nothing of it can be
// ended any more.
func groupRuns(group int) bool {
	if syscall.Kill(-group, 0) != nil {
		return false
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	names, err := proc.Readdirnames(-1)
	_ = proc.Close() // it was only read
	for _, name := range names {
		if _, number := strconv.Atoi(name); number != nil {
			continue
		}
		stat, gone := os.ReadFile("/proc/" + name + "/stat")
		// pid (name) state ppid pgrp …; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if gone == nil && len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) && string(fields[0]) != "Z" && string(fields[0]) != "X" {
			return true
		}
	}
	return err != nil // what could not be seen may run
}
