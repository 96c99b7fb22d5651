package main

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/worker/supervise"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// threads is the count of a process's threads where commands run.
func (w *work) threads(pid string) int {
	w.Helper()
	count := w.sh("while read name n; do case $name in Threads:) echo $n; esac; done < /proc/" + pid + "/status")
	n, err := strconv.Atoi(strings.TrimSpace(count))
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// The service and a worker on this machine have their threads in stock too, against
// commands that use up what their user may have, where its limits leave room for them.
func testThreads(t *testing.T) {
	want := func() int { return min(40, supervise.ThreadRoom()/2) } // less: others come and go
	w := newPlace(t, members{}).serve().open("", "stocked")
	for what, pid := range map[string]string{"the worker": "$PPID", "the service": strconv.Itoa(w.service.cmd.Process.Pid)} {
		w.until("the stock of "+what, func() bool { return w.threads(pid) >= want() })
	}
}

// Commands that use up the processes of their container do not take the worker along:
// it has the threads that it may come to need, and so has the first process.
func testProcessLimit(t *testing.T, profile members) {
	profile["pids_limit"] = 320
	w := newPlace(t, members{"it": profile}).serve().open("it", "crowded")
	for pid, want := range map[string]int{"$PPID": 40, "1": 20} {
		w.until("the stock of process "+pid, func() bool { return w.threads(pid) >= want })
	}
	bystander := w.background("exec sleep 1000")
	crowd := w.background("for i in {1..320}; do sleep 1000 & done 2> /dev/null; wait")
	start := protocol.ProcessStartParams{SessionID: w.session.ID, Command: "exec sleep 1000"}
	w.until("the limit", func() bool {
		_, err := w.ProcessStart(w.ctx(), start)
		return err != nil && w.kind(protocol.KindOverloaded, "a start at the limit", err) != nil
	})
	var calls sync.WaitGroup
	for range 48 {
		calls.Go(func() {
			if _, err := w.try("grep", members{"pattern": "any"}); err != nil {
				t.Errorf("a call at the limit: %s", explain(err))
			}
		})
	}
	calls.Wait()
	if p := w.process(bystander.ID); p.Status != protocol.ProcessRunning {
		t.Errorf("a process is %s, %s", p.Status, p.Reason)
	}
	if _, err := w.ProcessStop(w.ctx(), w.named(crowd.ID)); err != nil {
		t.Errorf("stop what fills the limit: %s", explain(err))
	}
	w.sh("true")
}
