//go:build linux

package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestStop(t *testing.T) {
	for _, tt := range []struct {
		name, line, signal string
		hard               bool
	}{
		{"at once", "echo ready; sleep 300", "SIGTERM", false},
		{"deaf", "trap '' TERM; echo ready; while :; do sleep 300; done", "SIGKILL", true},
		{"deaf child", "(trap '' TERM; echo ready; while :; do sleep 300; done) & sleep 300", "SIGTERM", true},
		{"job control", "set -m; sleep 300 & echo ready; sleep 300", "SIGTERM", false},
		{"halted", "echo ready; kill -STOP $$; sleep 300", "SIGTERM", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, r := newTest(t)
			if !tt.hard {
				m.termGrace = patience // the process ends before, however busy the machine is
			}
			p := start(t, m, tt.line)
			see(t, m, p.ID, "ready")
			if tt.name == "halted" {
				awaitState(t, p.PID, 'T')
			}
			began := time.Now()
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					got, err := m.Stop(context.Background(), p.ID)
					if err != nil || got.Status != tool.ProcessStopped || got.Signal != tt.signal || got.TerminalCause != string(tool.CauseRequestedStop) {
						t.Errorf("%+v %v", got, err)
					}
				})
			}
			all.Wait()
			if took := time.Since(began); tt.hard != (took >= m.termGrace) {
				t.Errorf("it took %v", took)
			}
			if left := carriers(t, m); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			if e := r.until(t, p.ID, ofType(tool.EventStopped)); e.Cause != tool.CauseRequestedStop {
				t.Errorf("stopped by %s", e.Cause)
			}
			if e := r.of(p.ID)[1]; e.Process.Status != tool.ProcessStopping {
				t.Errorf("the second event is %+v", e)
			}
			if _, err := m.Stop(t.Context(), p.ID); err != nil {
				t.Errorf("stopping again: %v", err)
			}
		})
	}
}

func TestStopOutlivesItsCaller(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "trap '' TERM; echo ready; while :; do sleep 300; done")
	see(t, m, p.ID, "ready")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := m.Stop(ctx, p.ID); tool.KindOf(err) != tool.Timeout {
		t.Errorf("given up: %v", err)
	}
	if got := wait(t, m, p.ID); got.Signal != "SIGKILL" {
		t.Errorf("%+v", got)
	}
}

func TestSignal(t *testing.T) {
	m, r := newTest(t)
	// Neither SIGINT, which bash may lose while it forks, nor SIGHUP, which is
	// ignored in what nohup started.
	p := start(t, m, "trap 'echo one' USR1; trap 'echo two; exit 5' USR2; echo ready; while :; do sleep 0.02; done")
	see(t, m, p.ID, "ready")
	if _, err := m.Signal(t.Context(), p.ID, "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	see(t, m, p.ID, "one")
	if _, err := m.Signal(t.Context(), p.ID, "sigfoo"); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("no such signal: %v", err)
	}
	if _, err := m.Signal(t.Context(), p.ID, "usr2"); err != nil {
		t.Fatal(err)
	}
	if got := wait(t, m, p.ID); got.ExitCode != 5 {
		t.Errorf("%+v", got)
	}
	if e := r.until(t, p.ID, ofType(tool.EventStopped)); e.Cause != tool.CauseNaturalExit {
		t.Errorf("stopped by %s", e.Cause)
	}
	if _, err := m.Signal(t.Context(), p.ID, "SIGKILL"); err == nil || !strings.Contains(err.Error(), "has ended") {
		t.Errorf("a signal after the end: %v", err)
	}
}

// awaitState returns when the process is in the state that /proc names so.
func awaitState(t *testing.T, pid int, state byte) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%s %v", b, err)
		}
		if i := bytes.LastIndexByte(b, ')'); b[i+2] == state {
			return
		}
	}
}
