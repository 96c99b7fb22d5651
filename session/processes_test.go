package session_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// launch starts a process that must start.
func (s *service) launch(r session.StartProcess) session.Process {
	s.t.Helper()
	p, err := s.StartProcess(s.t.Context(), r)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

func TestProcess(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	p := s.launch(session.StartProcess{SessionID: v.ID, Argv: []string{"sleep", "9"}, Label: "server", Actor: tool.Actor{ID: "x", Kind: tool.ActorSubagent}})
	if p.SessionID != v.ID || p.Status != session.ProcessRunning || p.ExitCode != nil || p.Label != "server" || p.PID == 0 ||
		p.Owner != (session.Owner{Kind: tool.ActorSubagent, ID: "x"}) ||
		p.Environment != (session.EnvironmentRef{Profile: "box", Backend: "docker", ID: v.EnvironmentID}) {
		t.Errorf("got %+v", p)
	}
	if got := s.sink.executed(); !slices.Equal(got, []string{"started process.start", "completed process.start"}) {
		t.Errorf("events %v", got)
	}
	q := s.launch(session.StartProcess{SessionID: v.ID, Command: "true"})
	if q.ID == p.ID || q.Owner.Kind != tool.ActorMain {
		t.Errorf("got %+v", q)
	}
	list, err := s.ListProcesses(t.Context(), v.ID)
	if err != nil || len(list) != 2 || list[0].ID != p.ID {
		t.Errorf("list %+v, %v", list, err)
	}
	if got, err := s.GetProcess(t.Context(), v.ID, p.ID); err != nil || got.ID != p.ID {
		t.Errorf("get %+v, %v", got, err)
	}
	if _, err := s.WriteProcess(t.Context(), v.ID, p.ID, []byte("0123456789")); err != nil {
		t.Error(err)
	}
	if _, err := s.CloseStdin(t.Context(), v.ID, p.ID); err != nil {
		t.Error(err)
	}
	if got, err := s.ResizeProcess(t.Context(), v.ID, p.ID, tool.TTY{Cols: 80, Rows: 24}); err != nil || got.TTY.Cols != 80 {
		t.Errorf("resize %+v, %v", got, err)
	}
	if got, err := s.SignalProcess(t.Context(), v.ID, p.ID, "int"); err != nil || got.Signal != "SIGINT" || got.Status != session.ProcessExited || got.ExitCode != nil {
		t.Errorf("signal %+v, %v", got, err)
	}
	if got, err := s.SignalProcess(t.Context(), v.ID, q.ID, "^c"); err != nil || got.Signal != "^C" {
		t.Errorf("a key: %+v, %v", got, err)
	}
	if got, err := s.StopProcess(t.Context(), v.ID, q.ID); err != nil || !got.Status.Terminal() {
		t.Errorf("stop %+v, %v", got, err)
	}
	// A process belongs to one session.
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
	_, err = s.GetProcess(t.Context(), w.ID, p.ID)
	wantKind(t, err, tool.ProcessNotFound)
	_, err = s.GetProcess(t.Context(), v.ID, "unknown")
	wantKind(t, err, tool.ProcessNotFound)
}

func TestBadStarts(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	for name, r := range map[string]session.StartProcess{
		"nothing":          {},
		"both":             {Command: "a", Argv: []string{"a"}},
		"no program":       {Argv: []string{""}},
		"no terminal":      {Command: "a", TTY: &tool.TTY{Cols: 80}},
		"a long operation": {Command: "a", OperationID: strings.Repeat("x", 257)},
		"no actor":         {Command: "a", Actor: tool.Actor{Kind: tool.ActorSubagent}},
	} {
		r.SessionID = v.ID
		_, err := s.StartProcess(t.Context(), r)
		t.Run(name, func(t *testing.T) { wantKind(t, err, tool.InvalidParams) })
	}
	_, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "a", Mode: tool.Unconfined})
	wantKind(t, err, tool.Denied)
	if got := s.sink.executed(); !slices.Equal(got, []string{"started process.start", "failed process.start denied"}) {
		t.Errorf("events %v", got)
	}
	side := s.launch(session.StartProcess{SessionID: v.ID, Command: "a", Actor: tool.Actor{ID: "y", Kind: tool.ActorSideChat}})
	if mode := s.env(v).at.processes[side.ID].SandboxMode; mode != tool.ReadOnly {
		t.Errorf("a side chat's process has mode %s", mode)
	}
	if got, err := s.GetProcess(t.Context(), v.ID, side.ID); err != nil || got.Owner != (session.Owner{Kind: tool.ActorSideChat, ID: "y"}) {
		t.Errorf("a side chat's process is owned by %+v, %v", got.Owner, err)
	}
	// The same operation of another actor is another start.
	s.launch(session.StartProcess{SessionID: v.ID, Command: "a", OperationID: "op", Actor: tool.Actor{ID: "y", Kind: tool.ActorSideChat}})
	_, err = s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "a", OperationID: "op", Actor: tool.Actor{ID: "y", Kind: tool.ActorSubagent}})
	wantKind(t, err, tool.InvalidParams)
}

// The same operation gives the same process, also after the service died.
func TestOperations(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	start := session.StartProcess{SessionID: v.ID, Command: "count", OperationID: "op/1", Environment: map[string]string{"A": "1", "B": "2"}}
	p := s.launch(start)
	if again := s.launch(start); again.ID != p.ID || again.OperationID != "op/1" {
		t.Errorf("got %+v", again)
	}
	other := start
	other.Environment = map[string]string{"A": "2", "B": "2"}
	_, err := s.StartProcess(t.Context(), other)
	wantKind(t, err, tool.InvalidParams)
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if again := s.launch(start); again.ID != p.ID {
		t.Errorf("after a restart: %+v", again)
	}
	_, err = s.StartProcess(t.Context(), other)
	wantKind(t, err, tool.InvalidParams)
	// Another session's operations are its own.
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	start.SessionID = w.ID
	if mine := s.launch(start); mine.SessionID != w.ID {
		t.Errorf("got %+v", mine)
	}
	if n := len(s.env(v).at.processes); n != 1 {
		t.Errorf("%d processes", n)
	}
}

func TestConcurrentOperation(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	ids := make(chan string)
	const n = 8
	for range n {
		go func() {
			p, err := s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "a", OperationID: "op"})
			if err != nil {
				t.Error(err)
			}
			ids <- p.ID
		}()
	}
	first := <-ids
	for range n - 1 {
		if id := <-ids; id != first {
			t.Errorf("%s and %s", first, id)
		}
	}
	if n := len(s.env(v).at.processes); n != 1 {
		t.Errorf("%d processes", n)
	}
}

// A start whose reply was lost is never repeated: it is found by its operation,
// or stays unknown.
func TestLostReply(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{})
	start := session.StartProcess{SessionID: v.ID, Command: "a", OperationID: "op"}
	r.world.startErr = tool.Errorf(tool.OutcomeUnknown, "the connection was lost")
	_, err := s.StartProcess(t.Context(), start)
	wantKind(t, err, tool.OutcomeUnknown)
	if p := s.launch(start); p.OperationID != "op" {
		t.Errorf("got %+v", p)
	}
	if n := len(s.env(v).at.processes); n != 1 {
		t.Fatalf("%d processes", n)
	}

	start.OperationID = "op2"
	r.world.startErr = tool.Errorf(tool.OutcomeUnknown, "the connection was lost")
	_, err = s.StartProcess(t.Context(), start)
	wantKind(t, err, tool.OutcomeUnknown)
	r.world.set(func() { // and the environment never heard of it
		at := r.world.places[v.EnvironmentID]
		delete(at.processes, at.order[1])
		at.order = at.order[:1]
	})
	for range 2 {
		_, err = s.StartProcess(t.Context(), start)
		wantKind(t, err, tool.OutcomeUnknown)
	}
	if n := len(s.env(v).at.processes); n != 1 {
		t.Errorf("%d processes", n)
	}
	// What certainly did not start may be started.
	start.OperationID = "op3"
	r.world.startErr = tool.Errorf(tool.Denied, "no")
	_, err = s.StartProcess(t.Context(), start)
	wantKind(t, err, tool.Denied)
	s.launch(start)
}

// Ids that environments make up are replaced by our own, which stay the same.
func TestForeignIDs(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	w := s.open(session.OpenRequest{Workspace: r.folder, Profile: "kept"})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a", Label: "foreign"})
	q := s.launch(session.StartProcess{SessionID: w.ID, Command: "a", Label: "foreign"})
	if p.ID == q.ID || len(p.ID) != 22 || !strings.HasPrefix(p.ID, "x-") {
		t.Errorf("ids %q and %q", p.ID, q.ID)
	}
	s.stop()
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	if got, err := s.GetProcess(t.Context(), v.ID, p.ID); err != nil || got.ID != p.ID {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
	_, err := s.GetProcess(t.Context(), v.ID, q.ID)
	wantKind(t, err, tool.ProcessNotFound)
}

func TestReadProcess(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	if _, err := s.WriteProcess(t.Context(), v.ID, p.ID, []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	read := func(r session.ReadProcess) session.ProcessOutput {
		t.Helper()
		out, err := s.ReadProcess(t.Context(), v.ID, p.ID, r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	two, minus := int64(2), int64(-1)
	if out := read(session.ReadProcess{Offset: &two, MaxBytes: 3}); string(out.Data) != "234" || out.StartOffset != 2 || out.EndOffset != 5 || out.TotalBytes != 10 || out.EOF {
		t.Errorf("got %+v", out)
	}
	if out := read(session.ReadProcess{TailBytes: 4}); string(out.Data) != "6789" || out.EOF {
		t.Errorf("got %+v", out)
	}
	if out := read(session.ReadProcess{}); string(out.Data) != "0123456789" {
		t.Errorf("got %+v", out)
	}
	// One that has closed its output may go on for ever: whoever reads until the end must not wait for its own.
	s.env(v).change(p.ID, "", func(p *tool.Process) { p.OutputClosed = true })
	if out := read(session.ReadProcess{Offset: &two}); !out.EOF || out.Process.Status != session.ProcessRunning {
		t.Errorf("after the last byte of a running process: %+v", out)
	}
	s.env(v).change(p.ID, "", func(p *tool.Process) { p.Status, p.ExitCode, p.OutputClosed = tool.ProcessStopped, 0, false })
	if out := read(session.ReadProcess{}); out.EOF {
		t.Error("the end before the last byte is in")
	}
	s.env(v).change(p.ID, "", func(p *tool.Process) { p.OutputClosed = true })
	if out := read(session.ReadProcess{Offset: &two}); !out.EOF || out.Process.Status != session.ProcessExited || *out.Process.ExitCode != 0 {
		t.Errorf("got %+v", out)
	}
	if out := read(session.ReadProcess{Offset: &two, MaxBytes: 1}); out.EOF {
		t.Error("the end before all was read")
	}
	// What caused the end is told as long as the record is kept.
	for record, want := range map[string]tool.EventCause{
		"": "", string(tool.CauseNaturalExit): tool.CauseNaturalExit,
		string(tool.CauseRequestedStop): tool.CauseRequestedStop, "service_restart": "",
	} {
		s.env(v).change(p.ID, "", func(p *tool.Process) { p.TerminalCause = record })
		if out := read(session.ReadProcess{}); out.Process.Cause != want {
			t.Errorf("got %q for %q, want %q", out.Process.Cause, record, want)
		}
	}
	for _, r := range []session.ReadProcess{{Offset: &minus}, {TailBytes: -1}, {MaxBytes: -1}, {Wait: -1}, {Offset: &two, TailBytes: 1}} {
		_, err := s.ReadProcess(t.Context(), v.ID, p.ID, r)
		wantKind(t, err, tool.InvalidParams)
	}
}

func TestProcessEvents(t *testing.T) {
	type change struct {
		event tool.ProcessEventType
		f     func(p *tool.Process)
	}
	stopped := func(code int) func(*tool.Process) {
		return func(p *tool.Process) { p.Status, p.ExitCode = tool.ProcessStopped, code }
	}
	closed := func(p *tool.Process) { p.OutputClosed = true }
	ended := func(p *tool.Process) { p.Status, p.OutputClosed = tool.ProcessStopped, true }
	lost := func(p *tool.Process) { p.Status, p.TerminalCause = tool.ProcessFailed, tool.CauseLost }
	failed := func(p *tool.Process) { p.Status, p.LastError = tool.ProcessFailed, "no such program" }
	same := func(*tool.Process) {}
	const (
		started = session.ProcessStartedEvent
		updated = session.ProcessUpdatedEvent
		exited  = session.ProcessExitedEvent
		last    = session.ProcessClosedEvent
		gone    = session.ProcessLostEvent
	)
	tests := []struct {
		name    string
		changes []change
		want    []session.ProcessEventType
		status  session.ProcessStatus
	}{
		{"an end and then the last byte", []change{{tool.EventStopped, stopped(3)}, {tool.EventUpdated, closed}},
			[]session.ProcessEventType{started, exited, last}, session.ProcessExited},
		{"both at once", []change{{tool.EventStopped, ended}}, []session.ProcessEventType{started, exited, last}, session.ProcessExited},
		{"told twice", []change{{tool.EventStopped, ended}, {tool.EventStopped, same}, {tool.EventUpdated, same}, {tool.EventCleanedUp, same}},
			[]session.ProcessEventType{started, exited, last}, session.ProcessExited},
		{"an update before", []change{{tool.EventUpdated, same}, {tool.EventRecheckDue, same}, {tool.EventStopped, ended}},
			[]session.ProcessEventType{started, updated, exited, last}, session.ProcessExited},
		{"a failure with a code", []change{{tool.EventFailed, func(p *tool.Process) { p.Status, p.ExitCode = tool.ProcessFailed, 1 }}},
			[]session.ProcessEventType{started, exited}, session.ProcessExited},
		{"a failure without", []change{{tool.EventFailed, failed}}, []session.ProcessEventType{started, exited}, session.ProcessFailed},
		{"lost", []change{{tool.EventFailed, lost}, {tool.EventUpdated, closed}}, []session.ProcessEventType{started, gone}, session.ProcessLost},
	}
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
			for _, c := range tt.changes {
				s.env(v).change(p.ID, c.event, c.f)
			}
			// Another process's event, which comes after all of these.
			mark := s.launch(session.StartProcess{SessionID: v.ID, Command: "mark"})
			s.sink.until(t, "the events", func() bool { return len(s.sink.typesLocked(mark.ID)) > 0 })
			if got := s.sink.eventTypes(p.ID); !slices.Equal(got, tt.want) {
				t.Errorf("events %v", got)
			}
			if got, err := s.GetProcess(t.Context(), v.ID, p.ID); err != nil || got.Status != tt.status {
				t.Errorf("status %v, %v", got.Status, err)
			}
		})
	}
}

// An environment forgets the oldest of the processes that have ended, and tells so: of
// however many there have been, each has ended once.
func TestEventsOfManyProcesses(t *testing.T) {
	const many, kept = 6000, 256
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	record := func(i int) tool.Process {
		id := strings.NewReplacer("0", "a", "1", "b", "8", "c", "9", "d").Replace(fmt.Sprintf("p-%020d", i))
		return tool.Process{ID: id, RootThreadID: v.ID, Status: tool.ProcessStopped, OutputClosed: true}
	}
	tell := func(event tool.ProcessEventType, i int) {
		s.env(v).send(backends.Event{Process: &tool.ProcessEvent{Type: event, Process: record(i)}})
	}
	for i := range many {
		tell(tool.EventStopped, i)
		if i >= kept {
			tell(tool.EventCleanedUp, i-kept)
		}
	}
	tell(tool.EventStopped, many) // comes after all of these
	s.sink.until(t, "the last event", func() bool {
		return len(s.sink.processes) > 0 && s.sink.processes[len(s.sink.processes)-1].Process.ID == record(many).ID
	})
	if again := s.sink.repeated(); len(again) > 0 {
		t.Errorf("%d events of %d processes came again, the first of them %v of %s",
			len(again), many, again[0].Type, again[0].Process.ID)
	}
}

// A service that falls behind makes up for what it missed.
func TestMissedEvents(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	s.env(v).change(p.ID, "", func(p *tool.Process) { p.Status, p.ExitCode, p.OutputClosed = tool.ProcessStopped, 0, true })
	s.env(v).send(overrun)
	s.sink.until(t, "what was missed", func() bool {
		return slices.Equal(s.sink.typesLocked(p.ID), []session.ProcessEventType{session.ProcessStartedEvent, session.ProcessExitedEvent, session.ProcessClosedEvent})
	})
}

func TestWaitProcess(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	if got, timedOut, err := s.WaitProcess(t.Context(), v.ID, p.ID, time.Millisecond); err != nil || !timedOut || got.Status != session.ProcessRunning {
		t.Errorf("got %+v, %t, %v", got, timedOut, err)
	}
	done := make(chan session.Process)
	for range 4 {
		go func() {
			got, timedOut, err := s.WaitProcess(t.Context(), v.ID, p.ID, 0)
			if err != nil || timedOut {
				t.Errorf("%t, %v", timedOut, err)
			}
			done <- got
		}()
	}
	s.env(v).change(p.ID, tool.EventUpdated, func(*tool.Process) {})
	s.env(v).change(p.ID, tool.EventStopped, func(p *tool.Process) { p.Status, p.ExitCode = tool.ProcessStopped, 7 })
	for range 4 {
		if got := <-done; got.Status != session.ProcessExited || *got.ExitCode != 7 {
			t.Errorf("got %+v", got)
		}
	}
}

// A wait ends with its session.
func TestWaitEndsWithItsSession(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	done := make(chan error)
	go func() {
		_, _, err := s.WaitProcess(t.Context(), v.ID, p.ID, 0)
		done <- err
	}()
	if _, err := s.Close(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	if err := <-done; tool.KindOf(err) != tool.Cancelled && tool.KindOf(err) != tool.SessionNotFound {
		t.Errorf("got %v", err)
	}
	// Its process was stopped, and that was told.
	if got := s.sink.eventTypes(p.ID); !slices.Contains(got, session.ProcessExitedEvent) {
		t.Errorf("events %v", got)
	}
}

func TestStatesOfEnvironments(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	cause := tool.Errorf(tool.BackendUnavailable, "the wire was cut")
	for _, c := range []backends.StateChange{
		{State: backends.StateDisconnected, Err: cause}, {State: backends.StateConnecting}, {State: backends.StateReady}, {State: backends.StateFailed, Err: cause},
	} {
		s.env(v).send(backends.Event{State: &c})
	}
	want := []session.State{
		session.StateBound, session.StateConnecting, session.StateReady,
		session.StateDisconnected, session.StateConnecting, session.StateReady, session.StateFailed,
	}
	s.sink.until(t, "the states", func() bool { return slices.Equal(s.sink.states[v.ID], want) })
	if got, err := s.Get(t.Context(), v.ID); err != nil || got.Err == nil {
		t.Errorf("got %+v, %v", got, err)
	}
	// Opening it again lets go of what failed.
	if got := s.open(session.OpenRequest{SessionID: v.ID}); got.State != session.StateReady || got.Err != nil {
		t.Errorf("got %+v", got)
	}
}
