package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// canSee says that commands can be looked for by the mark in their arguments.
const canSee = true

// running are the processes of this machine with the mark in their arguments.
func running(mark string) (found []string) {
	for _, pid := range marked(mark, "cmdline") {
		found = append(found, fmt.Sprintf("pid %d", pid))
	}
	return found
}

// marked looks through the command lines or the variables, which a process that has
// ended and was not waited for does not have.
func marked(mark string, in ...string) (pids []int) {
	for _, name := range in {
		files, _ := filepath.Glob("/proc/[0-9]*/" + name)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil || !bytes.Contains(data, []byte(mark)) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() && !slices.Contains(pids, pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// endLeft ends the processes with the mark and says which they were. One that had
// just been told to end gets a moment for it.
func endLeft(mark string) (left []string) {
	deadline := time.Now().Add(killing)
	for len(marked(mark, "cmdline", "environ")) > 0 && time.Now().Before(deadline) {
		timer := time.NewTimer(killing / 10)
		<-timer.C
	}
	for _, pid := range marked(mark, "cmdline", "environ") {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			continue
		}
		text := string(bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		left = append(left, fmt.Sprintf("pid %d: %.120s", pid, text))
		_ = syscall.Kill(-pid, syscall.SIGKILL) // its group, where it leads one
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return left
}
