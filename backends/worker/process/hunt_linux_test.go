package process

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
)

// What is to be killed at once does nothing more while it is looked for, and whom it has
// started is known still, with no mark and in another session too.
func TestHaltedMeanwhile(t *testing.T) {
	m, _ := newTest(t)
	started := start(t, m, `env -i setsid sh -c 'echo $$ > it.tmp; mv it.tmp it; exec sleep 300' & exec sleep 300`)
	child := number(t, filepath.Join(m.o.Root, "it"))
	p, err := m.find(started.ID)
	if err != nil {
		t.Fatal(err)
	}
	looks, in := 0, p.inGroup()
	q := quarry{jobs: []*proc{p}, family: true, match: in, look: func([]procInfo) {
		if looks++; looks == 1 && !halts(t, started.PID) {
			t.Error("it goes on while it is looked for")
		}
	}}
	if err := p.end(q, hard()); err != nil {
		t.Error(err)
	}
	if i, err := readProc(strconv.Itoa(child)); err == nil && !i.zombie {
		t.Errorf("left: %+v", i)
		_ = signalExactly(i, 9)
	}
}

// halts waits until the process is halted, and reports false where it ends.
func halts(t *testing.T, pid int) bool {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			return false
		}
		if bytes.Contains(stat, []byte(") T ")) {
			return true
		}
	}
	return false
}

// Whose end is near when everybody is told to end is not kept from it by who is deaf.
func TestCloseTellsAtOnce(t *testing.T) {
	m, r := newTest(t)
	m.termGrace = 2 * patience
	deaf := start(t, m, "trap '' TERM; echo ready; while :; do sleep 300; done")
	see(t, m, deaf.ID, "ready")
	quick := start(t, m, "exec sleep 300")
	ctx, cancel := context.WithCancel(t.Context())
	closed := make(chan error, 1)
	go func() { closed <- m.Close(ctx) }()
	defer func() {
		cancel()
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if e := r.until(t, deaf.ID, ofType(tool.EventStopped)); e.Process.Signal != "SIGKILL" {
			t.Errorf("the deaf one: %+v", e)
		}
	}()
	if e := r.until(t, quick.ID, ofType(tool.EventStopped)); e.Process.Signal != "SIGTERM" {
		t.Errorf("%+v", e)
	}
	for _, e := range r.of(deaf.ID) {
		if e.Type == tool.EventStopped {
			t.Errorf("the deaf one too: %+v", e)
		}
	}
}
