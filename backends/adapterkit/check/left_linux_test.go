package check

import (
	"errors"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDying tells a process that runs from one that was killed and is not gone yet.
func TestDying(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sleep", "300")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	if dying(pid) {
		t.Error("a process that sleeps is not dying")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if !dying(pid) {
		t.Error("a process that was killed runs no further")
	}
	var info unix.Siginfo
	for errors.Is(unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
	if !dying(pid) {
		t.Error("a process that nobody has waited for is gone")
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) {
		t.Errorf("it ended with %v", err)
	}
	if !dying(pid) {
		t.Error("a process that is not there is gone")
	}
}
