package program

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// maxHolders is how many processes are named that hold a pipe.
const maxHolders = 3

// holders names the processes beside this one that have a pipe open, as far as they may
// be looked at: " by pid 7 (\"sleep 300\")", or nothing.
func holders(pipe *os.File) string {
	info, err := pipe.Stat()
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	link := fmt.Sprintf("pipe:[%d]", stat.Ino)
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return ""
	}
	var found []string
	for _, p := range processes {
		pid, err := strconv.Atoi(p.Name())
		if err != nil || pid == os.Getpid() || !has(pid, link) {
			continue
		}
		if len(found) == maxHolders {
			found = append(found, "others")
			break
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // the number will do
		found = append(found, fmt.Sprintf("pid %d (%.120q)", pid, bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))))
	}
	if len(found) == 0 {
		return ""
	}
	return " by " + strings.Join(found, ", ")
}

// has reports whether a process has a file open that shows as link.
func has(pid int, link string) bool {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	open, err := os.ReadDir(dir)
	if err != nil {
		return false // gone, or another user's
	}
	for _, f := range open {
		if to, err := os.Readlink(filepath.Join(dir, f.Name())); err == nil && to == link {
			return true
		}
	}
	return false
}
