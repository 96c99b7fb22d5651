package session_test

import (
	"errors"
	"slices"
	"testing"

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
