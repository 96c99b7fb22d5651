package program

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// wait waits for the exit of the process and ends what is left of its group. As
// long as the process is not reaped the group's number is nobody else's.
func (t *tree) wait(cmd *exec.Cmd) error {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, t.pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break
		}
	}
	t.endGroup()
	return cmd.Wait()
}

// maxRounds bounds the hunt for descendants that fork while they are hunted.
const maxRounds = 16

// kill kills the process, its group, and those of its descendants that have left
// the group. They are stopped first, so that none of them is missed for having
// forked meanwhile.
func (t *tree) kill() {
	stopped := map[int]bool{t.pid: true}
	_ = unix.Kill(-t.pid, unix.SIGSTOP)
	for range maxRounds {
		more := false
		for _, pid := range children(stopped) {
			more = true
			stopped[pid] = true
			_ = unix.Kill(pid, unix.SIGSTOP)
		}
		if !more {
			break
		}
	}
	delete(stopped, t.pid)
	for pid := range stopped {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	t.endGroup()
}

// children are the processes whose parent is one of of, but those in of.
func children(of map[int]bool) (found []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil // the group is killed all the same
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || of[pid] {
			continue
		}
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // it has ended
		}
		// pid (name) state ppid …; the name may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil && of[parent] {
			found = append(found, pid)
		}
	}
	return found
}
