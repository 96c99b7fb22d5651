package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/session"
)

// offered is a tool that the test runs, in place of what the environment may have.
func offered(name string) []tool.Description { return []tool.Description{{Name: name}} }

func newPrograms(t *testing.T) (*rig, *service, session.Session) {
	t.Helper()
	r := newRig(t)
	r.programs = &programs{}
	s := r.start()
	return r, s, s.open(session.OpenRequest{Workspace: r.folder, Profile: "box"})
}

// TestRunCode: a program's calls are calls of the session, as its actor, in its
// mode and with their own events; what was offered goes to whoever offered it.
func TestRunCode(t *testing.T) {
	r, s, v := newPrograms(t)
	helper := tool.Actor{ID: "helper", Kind: tool.ActorSubagent}
	var invoked []string
	result, err := s.RunCode(t.Context(), session.CodeRequest{
		SessionID: v.ID,
		Code: `[{"Name":"write_file","Arguments":{"path":"a","content":"text"}},
			{"Name":"read_file","Arguments":{"path":"a"}},
			{"Name":"bash","Arguments":{"command":"mine"}},
			{"Name":"fail","Arguments":{"kind":"denied"}},
			{"Name":"read_file","Arguments":["no object"]}]`,
		Offered: offered("bash"),
		Invoke: func(_ context.Context, name string, arguments json.RawMessage) (tool.Result, error) {
			invoked = append(invoked, name+string(arguments))
			return tool.Result{Content: []tool.Part{{Type: tool.PartText, Text: "offered"}}}, nil
		},
		Actor: helper, CallID: "p", RunID: "r", NodeName: "n", View: backends.ViewStructured, Timeout: time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	view := tool.View("read_file", json.RawMessage(`{"content":"text","path":"a"}`))
	if want := []string{tool.View("write_file", json.RawMessage(`{"path":"a"}`)), view, "offered", "toolNotFound", "invalidParams"}; !slices.Equal(result.Logs, want) {
		t.Errorf("the program saw %q, want %q", result.Logs, want)
	}
	if want := []string{`bash{"command":"mine"}`}; !slices.Equal(invoked, want) {
		t.Errorf("invoked %q", invoked)
	}
	if want := []string{
		"started code.run", "started write_file", "completed write_file", "started read_file", "completed read_file",
		"started bash", "completed bash", "completed code.run",
	}; !slices.Equal(s.sink.executed(), want) {
		t.Errorf("events %v", s.sink.executed())
	}
	asked := r.programs.asked[0]
	var names []string
	for _, d := range asked.Tools {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, []string{"bash", "read_file", "write_file", "present_artifact"}) {
		t.Errorf("its tools are %v", names)
	}
	if asked.Actor != helper || asked.Mode != tool.Standard || asked.View != backends.ViewStructured || asked.Timeout != time.Minute {
		t.Errorf("asked %+v", asked)
	}
}

// TestSideChatsPrograms: what a side chat may not do it may not do in a program.
func TestSideChatsPrograms(t *testing.T) {
	_, s, v := newPrograms(t)
	result, err := s.RunCode(t.Context(), session.CodeRequest{
		SessionID: v.ID, Actor: tool.Actor{ID: "chat", Kind: tool.ActorSideChat}, Mode: tool.Standard,
		Code: `[{"Name":"write_file","Arguments":{"path":"a","content":"text"}}]`,
	})
	if err != nil || !slices.Equal(result.Logs, []string{"denied"}) {
		t.Errorf("%v, %v", result.Logs, err)
	}
}

// TestProgramsElsewhere: what a program calls in another environment runs in the mode
// that is usual there, as any call does.
func TestProgramsElsewhere(t *testing.T) {
	r := newRig(t)
	r.programs = &programs{}
	r.write(r.config, `{"execution_environments": {"overrides": {"code.*": "free"}, "profiles": {
		"free": {"backend": "docker", "image": "a", "host_workspace": "${workspaceFolder}", "permission_mode": "unconfined", "max_permission_mode": "unconfined"},
	}}}`)
	s := r.start()
	v := s.open(session.OpenRequest{Workspace: r.folder})
	for mode, want := range map[tool.Mode]string{"": "ran", tool.ReadOnly: "denied", tool.Unconfined: "denied"} {
		result, err := s.RunCode(t.Context(), session.CodeRequest{
			SessionID: v.ID, Mode: mode, Code: `[{"Name":"write_file","Arguments":{"path":"a","content":"text"}}]`,
		})
		if err != nil || len(result.Logs) != 1 || (result.Logs[0] == "denied") != (want == "denied") {
			t.Errorf("%q: %v, %v, want %s", mode, result.Logs, err, want)
		}
	}
}

func TestBadPrograms(t *testing.T) {
	_, s, v := newPrograms(t)
	for what, r := range map[string]session.CodeRequest{
		"nothing":          {},
		"an unknown tool":  {Code: "[]", Tools: []string{"none"}},
		"a tool twice":     {Code: "[]", Tools: []string{"bash", "bash"}},
		"a bad view":       {Code: "[]", View: "smell"},
		"a bad timeout":    {Code: "[]", Timeout: -1},
		"an actor's id":    {Code: "[]", Actor: tool.Actor{Kind: tool.ActorSubagent}},
		"a bad mode":       {Code: "[]", Mode: "root"},
		"a wide mode":      {Code: "[]", Mode: tool.Unconfined},
		"an unknown place": {Code: "[]", SessionID: "none"},
	} {
		if r.SessionID == "" {
			r.SessionID = v.ID
		}
		_, err := s.RunCode(t.Context(), r)
		if k := tool.KindOf(err); err == nil || k != tool.InvalidParams && k != tool.Denied && k != tool.SessionNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestNoPrograms: an environment that runs none says so.
func TestNoPrograms(t *testing.T) {
	s := newRig(t).start()
	v := s.open(session.OpenRequest{})
	_, err := s.RunCode(t.Context(), session.CodeRequest{SessionID: v.ID, Code: "[]"})
	wantKind(t, err, tool.Unsupported)
	if want := []string{"started code.run", "failed code.run unsupported"}; !slices.Equal(s.sink.executed(), want) {
		t.Errorf("events %v", s.sink.executed())
	}
}

// TestCancelProgram: the end of a program ends the calls that it waits for.
func TestCancelProgram(t *testing.T) {
	_, s, v := newPrograms(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := s.RunCode(ctx, session.CodeRequest{
		SessionID: v.ID, Code: `[{"Name":"ask","Arguments":{}}]`, Offered: offered("ask"),
		Invoke: func(ctx context.Context, _ string, _ json.RawMessage) (tool.Result, error) {
			cancel()
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		},
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
	if want := []string{"started code.run", "started ask", "failed ask cancelled", "failed code.run cancelled"}; !slices.Equal(s.sink.executed(), want) {
		t.Errorf("events %v", s.sink.executed())
	}
}
