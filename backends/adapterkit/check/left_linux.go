package check

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// canSee says that commands can be looked for by the mark in their arguments.
const canSee = true

// running are the processes of this machine with the mark in their arguments. One that
// was killed runs no further, though it may take a moment to be gone.
func running(mark string) (found []string) {
	for _, pid := range marked(mark, "cmdline") {
		if !dying(pid) {
			found = append(found, fmt.Sprintf("pid %d", pid))
		}
	}
	return found
}

// dying reports whether a process has been killed and not gone yet: proc_pid_status(5)
// has the signals that wait for it, proc_pid_stat(5) its flags.
func dying(pid int) bool {
	const (
		killed  = 1 << (syscall.SIGKILL - 1)
		exiting = 0x4 // PF_EXITING of the kernel
	)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return true // gone
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		if name != "SigPnd" && name != "ShdPnd" {
			continue
		}
		if pending, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64); err == nil && pending&killed != 0 {
			return true
		}
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	// The name, in parentheses, may hold anything; the flags are the ninth field.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&exiting != 0
}

// marked looks through the command lines or the variables, which a process that has
// ended and was not waited for does not have. It reads the list of processes once: on
// a machine with many of them that is what takes its time.
func marked(mark string, in ...string) (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil // nothing can be seen
	}
	names, _ := proc.Readdirnames(-1) // those until an error
	_ = proc.Close()                  // it was only read
	look := &reader{buf: make([]byte, 64<<10)}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		if slices.ContainsFunc(in, func(file string) bool {
			return bytes.Contains(look.read("/proc/"+name+"/"+file), []byte(mark))
		}) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reader reads one file after the other into the same memory, with no more of the kernel
// than that takes: there are thousands.
type reader struct{ buf []byte }

// read gives what is in the file until an error, which is valid until the next one is
// read.
func (r *reader) read(path string) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd) // it was only read
	got := 0
	for {
		n, err := syscall.Read(fd, r.buf[got:])
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case n <= 0:
			return r.buf[:got]
		}
		if got += n; got == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
	}
}

// endLeft ends the processes with the mark and says which they were. One that had
// just been told to end gets a moment for it.
func endLeft(mark string) (left []string) {
	deadline := time.Now().Add(killing)
	found := marked(mark, "cmdline", "environ")
	for len(found) > 0 && time.Now().Before(deadline) {
		timer := time.NewTimer(looking)
		<-timer.C
		found = marked(mark, "cmdline", "environ")
	}
	for _, pid := range found {
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
