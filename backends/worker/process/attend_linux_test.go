package process

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAttention loses nothing of commands that end while a thread waits for their end,
// or soon after.
func TestAttention(t *testing.T) {
	m, _ := newTest(t)
	for _, pause := range []time.Duration{0, attention / 2, attention, 3 * attention} {
		for _, size := range []int{0, 1, 64 << 10, 300_000} {
			line := "out() { head -c " + strconv.Itoa(size) + " /dev/zero | tr '\\0' $1; sleep " +
				strconv.FormatFloat(pause.Seconds(), 'f', 3, 64) + "; printf $1; }; out a; out b >&2; exit 3"
			got, err := m.Run(t.Context(), Command{Command: line, Timeout: time.Minute, MaxOutputBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			out, errs := strings.Repeat("a", size+1), strings.Repeat("b", size+1)
			if string(got.Stdout) != out || string(got.Stderr) != errs || got.ExitCode != 3 {
				t.Errorf("%v, %d bytes: %d and %d bytes, exit code %d", pause, size, len(got.Stdout), len(got.Stderr), got.ExitCode)
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.live) != 0 {
		t.Errorf("%d commands are live", len(m.live))
	}
}

// TestAttentionNeedsNoGoroutines has a short command followed by who runs it.
func TestAttentionNeedsNoGoroutines(t *testing.T) {
	m, _ := newTest(t)
	c := Command{Argv: []string{"/bin/true"}}
	for range 100 { // on a busy machine one may take longer than the attention
		f, pidfd, err := m.startForeground(c)
		if err != nil {
			t.Fatal(err)
		}
		f.followHere(pidfd)
		here := isClosed(f.exited) && isClosed(f.drained) && f.outputs == nil
		<-f.exited
		f.discard()
		if here {
			return
		}
	}
	t.Error("goroutines followed every command")
}
