package rpc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// alive reports whether the process runs. A zombie does not: its parent may
// never reap it.
func alive(pid int) bool {
	state, _ := processStat(pid)
	return state != "" && state != "Z" && state != "X"
}

// processStart is when the process started, as text that only means something
// in comparison: another one is another process with the same id.
func processStart(pid int) string {
	_, start := processStat(pid)
	return start
}

// processStat reads the state and the start time of a process, "" when there
// is none. They are fields 3 and 22 of proc_pid_stat(5); the command in field 2
// may hold anything, so that counting begins behind its closing parenthesis.
func processStat(pid int) (state, start string) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 20 {
		return "", ""
	}
	return fields[0], fields[19]
}
