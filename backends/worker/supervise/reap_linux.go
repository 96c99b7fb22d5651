package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/worker/process"
)

// reapUntil reaps every child until ctx ends and the last worker is reaped.
func (in *supervisor) reapUntil(ctx context.Context, chld <-chan os.Signal) {
	var settling sync.WaitGroup
	defer settling.Wait()
	for {
		in.reap(&settling)
		select {
		case <-ctx.Done():
			in.reap(&settling)
			return
		case <-chld:
		}
	}
}

func (in *supervisor) reap(settling *sync.WaitGroup) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return // no child is left, or none has ended
		}
		if c := in.byPID(pid); c != nil {
			settling.Go(func() { in.bury(c, status) })
		}
	}
}

// byPID finds a worker that was just reaped and makes sure that nobody signals
// its number again.
func (in *supervisor) byPID(pid int) *child {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, c := range in.workers {
		if c.pid == pid {
			c.pid = 0
			return c
		}
	}
	return nil
}

// bury does what a dead worker did not do itself, and only then lets another
// one take its place.
func (in *supervisor) bury(c *child, status unix.WaitStatus) {
	defer in.forget(c)
	switch {
	case status.Exited() && status.ExitStatus() == ExitIdle:
		// Its lifetime was the idle limit: nothing is left to wait for.
		in.o.Log.Info("worker ended idle", "session", c.o.Session)
	default:
		in.mu.Lock()
		in.idleAt = time.Now().Add(in.o.Lifetime)
		in.mu.Unlock()
		in.o.Log.Info("worker ended", "session", c.o.Session, "status", describe(status))
	}
	if err := in.killOrphans(); err != nil {
		in.o.Log.Error("end what the worker left behind", "session", c.o.Session, "error", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	lost, err := process.Settle(ctx, c.o.State, c.o.Session)
	if err != nil {
		in.o.Log.Error("settle the worker's records", "session", c.o.Session, "error", err)
	}
	if len(lost) > 0 {
		in.o.Log.Warn("processes lost with their worker", "session", c.o.Session, "count", len(lost))
	}
}

func describe(s unix.WaitStatus) string {
	if s.Signaled() {
		return s.Signal().String()
	}
	return "exit code " + strconv.Itoa(s.ExitStatus())
}

// killOrphans kills our children that are no workers, again and again until
// none is left: each may leave children of its own. Workers keep the orphans of
// their own commands, so that what becomes our child had a worker that is dead.
func (in *supervisor) killOrphans() error {
	deadline := time.Now().Add(killTimeout)
	for {
		orphans, err := in.orphans()
		if err != nil || len(orphans) == 0 {
			return err
		}
		for _, pid := range orphans {
			// One that ended in between is the reaper's; nothing else of ours can
			// have its number before it is reaped.
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d: %w", pid, err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v do not end", orphans)
		}
		time.Sleep(killInterval)
	}
}

// orphans are the pids of our living children that are no workers.
func (in *supervisor) orphans() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	// A worker that is being started is entered under the lock, so that with
	// the lock held no child of ours is unknown.
	in.mu.Lock()
	defer in.mu.Unlock()
	workers := map[int]bool{}
	for _, c := range in.workers {
		workers[c.pid] = true
	}
	self := strconv.Itoa(os.Getpid())
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || workers[pid] {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[0] != "Z" && fields[1] == self {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// terminate ends every worker in order, and what does not end by force.
func (in *supervisor) terminate() error {
	in.mu.Lock()
	var all []*child
	for _, c := range in.workers {
		all = append(all, c)
	}
	in.mu.Unlock()
	for _, c := range all {
		in.signal(c, unix.SIGTERM)
	}
	timeout := time.NewTimer(in.o.ShutdownTimeout + terminateSlack)
	defer timeout.Stop()
	var late []string
	for _, c := range all {
		select {
		case <-c.done:
		case <-timeout.C:
			timeout.Reset(0)
			late = append(late, c.o.Session)
			in.signal(c, unix.SIGKILL)
			select {
			case <-c.done:
			case <-time.After(2 * killTimeout):
				return fmt.Errorf("the worker of session %s does not end", c.o.Session)
			}
		}
	}
	if len(late) > 0 {
		return fmt.Errorf("the workers of sessions %v were killed: they did not end within %v", late, in.o.ShutdownTimeout)
	}
	return nil
}
