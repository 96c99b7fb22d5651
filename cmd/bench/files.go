package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// text is lines of letters, size bytes in all.
func text(size int) string {
	const line = "the quick brown fox jumps over the lazy dog, and back again\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}

func writeText(path string, size int) error { return os.WriteFile(path, []byte(text(size)), 0o600) }

// residentMemory is the memory of a process that is in use, in bytes.
func residentMemory(pid int) (int64, error) { return memoryOf(pid, "VmRSS:") }

// memoryOf is a figure of the memory of a process, in bytes, such as "VmRSS:" of
// proc(5).
func memoryOf(pid int, field string) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(status, []byte(field))
	if !found {
		return 0, fmt.Errorf("no %s of process %d", field, pid)
	}
	fields := bytes.Fields(rest)
	kib, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return kib << 10, err
}
