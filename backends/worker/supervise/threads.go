package supervise

import (
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// Where a container sees the limit of its processes and threads, in cgroups of version
// 2 and 1. On a machine itself neither is there.
var processLimits = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/pids"}

// StockThreads makes threads until there are n that the runtime keeps. A Go program that
// gets no thread when it needs one ends at once, and commands that use up a container's or
// a user's limit of processes are not to take their worker, the service, or everything,
// along. Where there is little room there are fewer, or none.
func StockThreads(n int) {
	var made, over sync.WaitGroup
	leave := make(chan struct{})
	for range min(n, room(processLimits, plenty())) {
		made.Add(1)
		over.Go(func() {
			// One that is locked has its thread for itself, also while it waits.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			made.Done()
			<-leave
		})
	}
	made.Wait()
	close(leave)
	over.Wait()
}

// needed is how many processes and threads of a limit are not for the stock: init, a
// worker and an attach have some 25 together, and commands want to run.
const needed = 64

// room is how many threads may be made on stock: a quarter of what the limit that one of
// the directories tells leaves beyond what is needed. Where none is told, any number if
// the user's own limit is plenty, and else none: how much of that is used up nobody says.
func room(dirs []string, plenty bool) int {
	for _, dir := range dirs {
		limit, err := os.ReadFile(filepath.Join(dir, "pids.max"))
		if err != nil {
			continue
		}
		now, err := os.ReadFile(filepath.Join(dir, "pids.current"))
		if err != nil {
			continue
		}
		most, err := strconv.Atoi(strings.TrimSpace(string(limit)))
		if err != nil {
			continue // "max": there is none
		}
		used, err := strconv.Atoi(strings.TrimSpace(string(now)))
		if err != nil {
			continue
		}
		return max(0, most-used-needed) / 4
	}
	if plenty {
		return math.MaxInt
	}
	return 0
}
