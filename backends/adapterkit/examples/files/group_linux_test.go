package main

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestGroupRuns: who has ended is not waited for, whether he was reaped or not.
func TestGroupRuns(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "300")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	group := cmd.Process.Pid
	if !groupRuns(group) {
		t.Error("a group whose process sleeps runs")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, group, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	if groupRuns(group) {
		t.Error("a group that has only a zombie does not run")
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("it ended with %v", err)
	}
	if groupRuns(group) {
		t.Error("a group that is gone does not run")
	}
}
