package engine

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel end this process when the thread that started it
// ends. A parent that ended before has closed our input, which ends us as well.
func dieWithParent() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// confine bounds what the process may take of the machine: memory in bytes, no
// core files, no new privileges.
func confine(data uint64) error {
	for _, l := range []struct {
		which int
		limit uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_DATA, data}} {
		var now unix.Rlimit
		if err := unix.Getrlimit(l.which, &now); err != nil {
			return err
		}
		if l.limit >= now.Max {
			continue // it is tighter already
		}
		if err := unix.Setrlimit(l.which, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return err
		}
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// lowerPriority has a process stand back for others. Where it cannot be said, it takes
// its turn with them.
func lowerPriority(pid, nice int) {
	// The kernel knows the priority of threads only; those to come inherit it.
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, t := range threads {
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, nice)
		}
	}
}
