package main

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestQualityCommand are the rows of [TestQuality] for somebody else's adapter: here
// our own worker, as an adapter on its standard input and output.
func TestQualityCommand(t *testing.T) {
	for name, run := range map[string]func(*testing.T, members){
		"ServiceKilled":   testAdapterWithoutService,
		"AdapterKilled":   testAdapterKilled,
		"Variables":       testAdapterVariables,
		"NoAdapter":       testNoAdapter,
		"NoPrograms":      testNoPrograms,
		"WithoutLandlock": testAdapterWithoutLandlock,
	} {
		t.Run(name, func(t *testing.T) { run(t, adapterProfile(t)) })
	}
	t.Run("ProgramsUnderGuard", testProgramsUnderGuard)
	t.Run("ProgramsAndRate", testProgramsAndRate)
	everyday(t, adapterProfile(t))
}

func adapterProfile(t *testing.T) members {
	t.Helper()
	dir := shortDir(t)
	return members{
		"backend": "command", "workspace": filepath.Join(dir, "workspace"), "max_permission_mode": "unconfined",
		"command": []string{filepath.Join(programDir, "caisson"), "worker", "--state=" + filepath.Join(dir, "state"), "--max-permission-mode=unconfined"},
	}
}

// gone waits for the end of a process.
func gone(t *testing.T, what string, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for running(pid) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s lives on", what)
		}
	}
}

// An adapter lives no longer than its connection, and its processes neither; what it
// was for is lost, never empty.
func testAdapterWithoutService(t *testing.T, profile members) {
	p := newPlace(t, members{"it": profile})
	s := p.serve()
	w := s.open("it", "lasting")
	pid := w.background("exec sleep 1000").PID
	sendTo(s, syscall.SIGKILL)
	s.exit()
	gone(t, "a process of a dead service's adapter", pid)
	if _, err := p.serve().tryOpen("it", "lasting"); err == nil || kindOf(err) != protocol.KindEnvironmentLost {
		t.Errorf("opened again: %v", explain(err))
	}
}

// A killed adapter: what was in flight has an unknown outcome, its processes are
// lost, and the next call starts it anew, on the files that there are.
func testAdapterKilled(t *testing.T, profile members) {
	w := newPlace(t, members{"it": profile}).serve().open("it", "lasting")
	w.sh("echo kept > f")
	lost := w.background("exec sleep 1000")
	_, err := w.try("bash", members{"command": "kill -KILL $PPID; sleep 1"})
	if kindOf(err) != protocol.KindOutcomeUnknown {
		t.Fatalf("in flight: %v", explain(err))
	}
	if got := w.sh("cat f"); got != "kept\n" {
		t.Errorf("afterwards the file holds %q", got)
	}
	gone(t, "a process of a dead adapter", lost.PID)
	if got := w.process(lost.ID); got.Status != protocol.ProcessLost {
		t.Errorf("its process is %+v", got)
	}
}

// Our own worker as an adapter runs no confined command where there is no Landlock.
func testAdapterWithoutLandlock(t *testing.T, profile members) {
	p := newPlace(t, members{"it": profile})
	p.olderKernel(withoutLandlock)
	p.serve().open("it", "free").withoutLandlock()
}

// What is forwarded reaches commands, over the connection alone.
func testAdapterVariables(t *testing.T, profile members) {
	profile["forward_env"] = []string{variable}
	p := newPlace(t, members{"it": profile})
	if _, err := p.serve().tryOpen("it", "none"); err == nil || !strings.Contains(err.Error(), variable) {
		t.Errorf("without the variable: %v", explain(err))
	}
	p.env = []string{variable + "=" + variableValue}
	w := p.serve().open("it", "forwarded")
	if got := w.sh("echo $" + variable); got != variableValue+"\n" {
		t.Errorf("the command has %q", got)
	}
	if strings.Contains(w.log.String(), variableValue) {
		t.Error("the log tells the value")
	}
	if got := w.sh(`for f in /proc/[0-9]*/cmdline; do tr '\0' ' ' <$f 2>/dev/null; done; true`); strings.Contains(got, variableValue) {
		t.Error("an argument tells the value")
	}
}

// What is no adapter is said to be none, with what it said itself.
func testNoAdapter(t *testing.T, profile members) {
	for words, command := range map[string][]string{
		"no-such-adapter":       {"no-such-adapter"},
		"out of luck":           {"/bin/sh", "-c", "echo out of luck >&2; exit 3"},
		"usage: something else": {"/bin/sh", "-c", "echo usage: something else"},
		"absolute path":         {"./adapter"},
	} {
		profile["command"] = command
		_, err := newPlace(t, members{"it": profile}).serve().tryOpen("it", "none")
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: %v", command, explain(err))
		}
	}
}

// Programs are for environments that run them.
func testNoPrograms(t *testing.T, profile members) {
	w := newPlace(t, members{"it": profile}).serve().open("it", "none")
	_, err := w.CodeRun(w.ctx(), protocol.CodeRunParams{SessionID: w.session.ID, Code: "1"})
	if kindOf(err) != protocol.KindUnsupported {
		t.Errorf("%v", explain(err))
	}
}

// kindOf is the kind of an error answer, "" for any other.
func kindOf(err error) protocol.Kind {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return e.Kind()
	}
	return ""
}
