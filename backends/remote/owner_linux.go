package remote

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine tells this machine and process namespace from others: pids of
// another namespace prove nothing.
func machine() string {
	id, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		id = nil // containers often have none; the name and the namespace remain
	}
	namespace, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		namespace = ""
	}
	return strings.TrimSpace(string(id)) + " " + namespace
}

// processStart is when a process started, as "boot:ticks", and whether it runs.
func processStart(pid int) (start string, running bool) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) {
		// A /proc that hides the processes of others says so of these, too.
		return "", !errors.Is(unix.Kill(pid, 0), unix.ESRCH)
	}
	// The name in brackets may hold anything, brackets too; the state follows
	// the last of them, and the start is the twentieth field from there.
	_, rest, ok := cutLast(string(stat), ")")
	fields := strings.Fields(rest)
	if err != nil || !ok || len(fields) < 20 {
		return "", true
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", false
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", true
	}
	return strings.TrimSpace(string(boot)) + ":" + fields[19], true
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}
