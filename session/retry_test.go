package session_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

func refused() error {
	return &tool.Error{Kind: tool.BackendUnavailable, Message: "no connection", Retryable: true}
}

func lost() error { return tool.Errorf(tool.OutcomeUnknown, "the connection was lost") }

func TestRetriesOfCalls(t *testing.T) {
	repeat := func(err error, n int) []error { return slices.Repeat([]error{err}, n) }
	tests := []struct {
		name         string
		tool         string
		refuse, lose []error
		calls        int // how often the environment was asked
		kind         tool.Kind
	}{
		{"a write that did nothing", "write_file", repeat(refused(), 2), nil, 3, ""},
		{"a write whose reply was lost", "write_file", nil, repeat(lost(), 1), 1, tool.OutcomeUnknown},
		{"a command whose reply was lost", "bash", nil, repeat(lost(), 1), 1, tool.OutcomeUnknown},
		{"a read whose reply was lost", "read_file", nil, repeat(lost(), 2), 3, ""},
		{"a write that was lost after it had been refused", "write_file", repeat(refused(), 1), repeat(lost(), 1), 2, tool.OutcomeUnknown},
		{"a tool that nobody knows", "nothing", nil, repeat(lost(), 1), 1, tool.OutcomeUnknown},
		{"without end", "read_file", repeat(refused(), 9), nil, 4, tool.BackendUnavailable},
		{"reads without end", "read_file", nil, repeat(lost(), 9), 4, tool.OutcomeUnknown},
		{"what will not pass", "read_file", repeat(tool.Errorf(tool.Denied, "no"), 1), nil, 1, tool.Denied},
		{"a program that failed", "write_file", []error{errors.New("odd")}, nil, 1, tool.Internal},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			s := r.start()
			v := s.open(session.OpenRequest{Workspace: r.folder})
			s.call(v.ID, "write_file", `{"path":"a","content":"x"}`)
			var described int
			r.world.set(func() {
				r.world.called, r.world.refuse, r.world.lose = nil, test.refuse, test.lose
				described = r.world.described
			})
			_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: test.tool, Arguments: []byte(`{"path":"a","content":"y"}`)})
			if test.kind == "" && err != nil {
				t.Errorf("failed: %v", err)
			}
			if test.kind != "" && tool.KindOf(err) != test.kind {
				t.Errorf("got %v, want %s", err, test.kind)
			}
			r.world.set(func() {
				// An answer about a call that is lost must not wait for another connection.
				if writes := test.tool == "write_file" || test.tool == "bash"; writes && r.world.described != described {
					t.Error("the environment was asked for its tools")
				}
				if got := len(r.world.called); got != test.calls {
					t.Errorf("called %d times (%v), want %d", got, r.world.called, test.calls)
				}
			})
			// One call has one pair of events, however often it was tried.
			if got := s.sink.executed(); len(got) != 4 {
				t.Errorf("events %v", got)
			}
		})
	}
}

// A snapshot whose worker was killed before it was fetched is made once more: that
// only reads.
func TestSnapshotLost(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	s.call(v.ID, "write_file", `{"path":"a","content":"x"}`)
	lose := func(n int) { r.world.set(func() { r.world.loseExports = n }) }
	lose(1)
	if a, _, err := s.PublishArtifact(t.Context(), v.ID, "a"); err != nil || a.Size != 1 {
		t.Errorf("published %+v, %v", a, err)
	}
	lose(1)
	if got := s.call(v.ID, "present_artifact", `{"path":"a"}`); got.IsError {
		t.Errorf("presented %+v", got)
	}
	lose(100)
	_, _, err := s.PublishArtifact(t.Context(), v.ID, "a")
	wantKind(t, err, tool.OutcomeUnknown)
}

// max_retries 0 means none.
func TestNoRetries(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution": {"max_retries": 0}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	r.world.set(func() { r.world.refuse = []error{refused()} })
	_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "read_file"})
	wantKind(t, err, tool.BackendUnavailable)
}

// A start that is known not to have happened is tried again, one that was lost never.
func TestRetriesOfStarts(t *testing.T) {
	for _, operation := range []string{"", "op"} {
		r := newRig(t)
		s := r.start()
		v := s.open(session.OpenRequest{Workspace: r.folder})
		start := func() (session.Process, error) {
			return s.StartProcess(t.Context(), session.StartProcess{SessionID: v.ID, Command: "x", OperationID: operation})
		}
		r.world.set(func() {
			r.world.startErr = &tool.Error{Kind: tool.Denied, Message: "too many processes", Retryable: true}
		})
		if _, err := start(); err != nil {
			t.Errorf("not tried again: %v", err)
		}
		r.world.set(func() { r.world.startErr = lost() })
		if operation != "" {
			operation = "other"
		}
		_, err := start()
		wantKind(t, err, tool.OutcomeUnknown)
		list, err := s.ListProcesses(t.Context(), v.ID)
		if err != nil || len(list) != 2 {
			t.Errorf("%d processes, %v", len(list), err)
		}
	}
}

// What only looks at processes is asked again when the connection was lost, what may
// change one never is; and looking for the process first does not make that unknown.
func TestRetriesOfProcesses(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	ours := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	foreign := s.launch(session.StartProcess{SessionID: v.ID, Command: "a", Label: "foreign"})
	s.stop() // so that ids are looked for anew
	s = r.start()
	s.open(session.OpenRequest{SessionID: v.ID})
	r.world.env(v.EnvironmentID, v.ID).change(ours.ID, "", func(p *tool.Process) { p.Status = tool.ProcessStopped })
	ask := map[string]func(p string) error{
		"list":        func(string) error { return second(s.ListProcesses(t.Context(), v.ID)) },
		"get":         func(p string) error { return second(s.GetProcess(t.Context(), v.ID, p)) },
		"read":        func(p string) error { return second(s.ReadProcess(t.Context(), v.ID, p, session.ReadProcess{})) },
		"wait":        func(string) error { _, _, err := s.WaitProcess(t.Context(), v.ID, ours.ID, time.Minute); return err },
		"write":       func(p string) error { return second(s.WriteProcess(t.Context(), v.ID, p, []byte("x"))) },
		"close_stdin": func(p string) error { return second(s.CloseStdin(t.Context(), v.ID, p)) },
		"resize": func(p string) error {
			return second(s.ResizeProcess(t.Context(), v.ID, p, tool.TTY{Cols: 1, Rows: 1}))
		},
		"signal": func(p string) error { return second(s.SignalProcess(t.Context(), v.ID, p, "INT")) },
		"stop":   func(p string) error { return second(s.StopProcess(t.Context(), v.ID, p)) },
	}
	r.world.set(func() { r.world.loseProcess, r.world.asked = 1, nil })
	if err := ask["write"](foreign.ID); err != nil || !slices.Equal(r.world.asked, []string{"list", "list", "write"}) {
		t.Errorf("asked %v, %v", r.world.asked, err)
	}
	for _, reads := range []string{"list", "get", "read", "wait"} {
		for lose, want := range map[int]tool.Kind{2: "", 9: tool.OutcomeUnknown} {
			r.world.set(func() { r.world.loseProcess, r.world.asked = lose, nil })
			err := ask[reads](ours.ID)
			if (err == nil) != (want == "") || err != nil && tool.KindOf(err) != want {
				t.Errorf("%s, lost %d times: %v", reads, lose, err)
			}
			if e, ok := errors.AsType[*tool.Error](err); err != nil && (!ok || !strings.Contains(e.Hint, "changed nothing") || !strings.Contains(e.Message, "lost")) {
				t.Errorf("%s does not say that nothing was changed: %+v", reads, err)
			}
			if got := len(r.world.asked); got != min(lose+1, 4) {
				t.Errorf("%s, lost %d times, was asked %v", reads, lose, r.world.asked)
			}
		}
	}
	for _, changes := range []string{"write", "close_stdin", "resize", "signal", "stop"} {
		r.world.set(func() { r.world.loseProcess, r.world.asked = 1, nil })
		err := ask[changes](ours.ID)
		if e, ok := errors.AsType[*tool.Error](err); !ok || e.Kind != tool.OutcomeUnknown || strings.Contains(e.Hint, "changed nothing") {
			t.Errorf("%s: %v", changes, err)
		}
		if got := len(r.world.asked); got != 1 {
			t.Errorf("%s was asked %v", changes, r.world.asked)
		}
	}
}

// A read of output that is asked again does not wait longer than it was to.
func TestRetriesWaitNoLonger(t *testing.T) {
	r := newRig(t)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	p := s.launch(session.StartProcess{SessionID: v.ID, Command: "a"})
	r.world.set(func() { r.world.loseProcess = 2 })
	var offset int64
	if _, err := s.ReadProcess(t.Context(), v.ID, p.ID, session.ReadProcess{Offset: &offset, Wait: time.Minute}); err != nil {
		t.Fatal(err)
	}
	if w := r.world.waits; len(w) != 1 || w[0] >= time.Minute {
		t.Errorf("it waited %v", w)
	}
}

// The process tool is asked again for what only looks.
func TestRetriesOfTheProcessTool(t *testing.T) {
	r := newRig(t)
	r.write(r.config, `{"execution_environments": {"profiles": {"full": {"backend": "docker", "image": "a"}}}, "execution": {"retry_backoff": "1ms"}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder, Profile: "full"})
	for action, again := range map[string]bool{"list": true, "read": true, "update": true, "write": false, "stop": false, "": false} {
		r.world.set(func() { r.world.lose, r.world.called = []error{lost()}, nil })
		_, err := s.Call(t.Context(), session.CallRequest{SessionID: v.ID, Name: "process", Arguments: []byte(`{"action":"` + action + `"}`)})
		if (err == nil) != again || (len(r.world.called) == 2) != again {
			t.Errorf("%q was called %d times: %v", action, len(r.world.called), err)
		}
	}
}
