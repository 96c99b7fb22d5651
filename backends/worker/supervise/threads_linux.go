package supervise

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker/cgroup"
)

// needed is how many processes and threads of a limit are not for the stock: init, a
// worker and an attach have some 25 together, and commands want to run.
const needed = 64

// ThreadRoom is how many threads [StockThreads] makes here at most: a stock must not
// itself meet the limit that it is there for. It is the least that any limit gives, and
// none where a limit or its use cannot be seen.
func ThreadRoom() int { return threadRoom(cgroup.Own, "/proc") }

func threadRoom(own func(controller string) (cgroup.Group, error), proc string) int {
	var user unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NPROC, &user) != nil {
		return 0
	}
	room := systemRoom(proc, user.Cur)
	switch group, err := own("pids"); {
	case errors.Is(err, cgroup.ErrNone):
		return room
	case err != nil:
		return 0
	default:
		return min(room, groupsRoom(group.Levels()))
	}
}

// roomOf is what a limit gives: a quarter of what it leaves beyond what is needed.
func roomOf(most, used int) int { return max(0, most-used-needed) / 4 }

// groupsRoom is what the limits of control groups give. A service, a login or a container
// has them, on the machine itself and inside, and each counts what is in the groups below
// it too.
func groupsRoom(dirs []string) int {
	room := math.MaxInt
	for _, dir := range dirs {
		limit, err := os.ReadFile(filepath.Join(dir, "pids.max"))
		if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(limit)) == "max" {
			continue // no limit: the first of all groups, and those where nobody has turned it on, lack the file
		}
		most, err1 := strconv.Atoi(strings.TrimSpace(string(limit)))
		now, err2 := os.ReadFile(filepath.Join(dir, "pids.current"))
		used, err3 := strconv.Atoi(strings.TrimSpace(string(now)))
		if errors.Join(err, err1, err2, err3) != nil {
			return 0
		}
		room = min(room, roomOf(most, used))
	}
	return room
}

// systemRoom is what the user's own limit and those of the whole system give. How many
// processes and threads a user has is told nowhere: those in other containers count, and
// are not seen. They are no more than all that the kernel has, and it tells that.
func systemRoom(proc string, user uint64) int {
	used, known := allTasks(proc)
	if !known {
		return 0
	}
	room := math.MaxInt
	if user < math.MaxInt { // else there is none
		room = roomOf(int(user), used)
	}
	for _, name := range []string{"threads-max", "pid_max"} {
		limit, err := os.ReadFile(filepath.Join(proc, "sys", "kernel", name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // some containers do not show it
		}
		most, malformed := strconv.Atoi(strings.TrimSpace(string(limit)))
		if errors.Join(err, malformed) != nil {
			return 0
		}
		room = min(room, roomOf(most, used))
	}
	return room
}

// allTasks is how many processes and threads the kernel has, of all users.
func allTasks(proc string) (n int, known bool) {
	load, err := os.ReadFile(filepath.Join(proc, "loadavg"))
	if err != nil {
		return 0, false
	}
	const tasksField = 3 // "running/all"
	fields := strings.Fields(string(load))
	if len(fields) <= tasksField {
		return 0, false
	}
	_, all, _ := strings.Cut(fields[tasksField], "/")
	n, err = strconv.Atoi(all)
	return n, err == nil
}
