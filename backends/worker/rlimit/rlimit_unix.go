//go:build linux || darwin

package rlimit

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// become limits this process and replaces it by the program. It returns only
// when that failed.
func (l Limits) become(path string, argv []string) error {
	env := os.Environ()
	if l.CPUTime > 0 {
		seconds := uint64((l.CPUTime + time.Second - 1) / time.Second)
		if err := lower(unix.RLIMIT_CPU, seconds, seconds+1); err != nil {
			return fmt.Errorf("limit the processor's time: %w", err)
		}
		// SIGXCPU writes a core file, into what the program leaves.
		if err := lower(unix.RLIMIT_CORE, 0, 0); err != nil {
			return fmt.Errorf("switch off core files: %w", err)
		}
	}
	if l.Memory > 0 {
		// The last thing: from here on this process may not grow either.
		if err := lower(memoryLimit, uint64(l.Memory), uint64(l.Memory)); err != nil {
			return fmt.Errorf("limit the memory: %w", err)
		}
	}
	return syscall.Exec(path, argv, env)
}

// lower sets a limit, which is never more than there was.
func lower(resource int, soft, hard uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	return unix.Setrlimit(resource, &unix.Rlimit{Cur: min(soft, now.Max), Max: min(hard, now.Max)})
}
