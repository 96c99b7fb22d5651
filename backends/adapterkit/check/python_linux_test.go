package check

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestPythonSession: the service's own backend opens a session on the adapter that was
// written from the document alone, and what a session has works on it.
func TestPythonSession(t *testing.T) {
	t.Parallel()
	script, err := filepath.Abs(python)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	root := filepath.Join(t.TempDir(), "workspace")
	e, err := command.New(command.Options{}).Open(ctx, backends.Binding{
		Session: "s", Environment: "caisson-1",
		Profile: profile.Profile{
			Backend: profile.Command, Workspace: root, Command: append(interpreter(t), script),
			PermissionMode: tool.Unconfined, MaxPermissionMode: tool.Unconfined, Timeout: time.Minute, ShutdownTimeout: time.Minute,
		},
		Secrets: backends.Secrets{Token: strings.Repeat("5e", 32), Environment: map[string]string{"GIVEN": "yes"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(name, arguments string) map[string]any {
		t.Helper()
		r, err := e.Call(ctx, tool.Request{ID: "c", Name: name, Arguments: json.RawMessage(arguments), MaxOutputBytes: 1 << 20})
		if err != nil || r.IsError {
			t.Fatalf("%s %s: %+v, %v", name, arguments, r, err)
		}
		raw := r.StructuredContent
		if raw == nil {
			raw = json.RawMessage(r.Content[0].Text)
		}
		var got map[string]any
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	call("write_file", `{"path":"a.txt","content":"one\n"}`)
	if got := call("bash", `{"command":"cat a.txt; echo $GIVEN; exit 3"}`); got["stdout"] != "one\nyes\n" || got["exit_code"] != 3.0 {
		t.Errorf("bash: %v", got)
	}
	if _, err := e.Call(ctx, tool.Request{ID: "c", Name: "read_file", Arguments: json.RawMessage(`{"path":"../x"}`)}); tool.KindOf(err) != tool.PathOutsideRoot {
		t.Errorf("a path outside of the root: %v", err)
	}
	// A command in the background is a process, however short it is, and bash gives
	// none an input.
	id, _ := call("bash", `{"command":"true","run_in_background":true}`)["promoted_process_id"].(string)
	for _, p := range []string{id, call("bash", `{"command":"sleep 300","run_in_background":true}`)["promoted_process_id"].(string)} {
		_, err := e.Call(ctx, tool.Request{ID: "c", Name: "process", Arguments: json.RawMessage(`{"action":"write","process_id":"` + p + `","input":"x"}`)})
		if p == "" || tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "takes no input") {
			t.Errorf("input for the process %q: %v", p, err)
		}
	}
	token, _ := call("present_artifact", `{"path":"a.txt"}`)["execution_export"].(string)
	export, err := e.Export(ctx, token)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(export); string(data) != "one\n" || err != nil || export.Close() != nil {
		t.Errorf("exported %q, %v", data, err)
	}

	events := e.Events().Subscribe()
	defer events.Close()
	p, err := e.Processes().Start(ctx, tool.StartRequest{OperationID: "o", Command: "read x; echo got $x", Actor: "s", PermissionMode: tool.Unconfined})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Processes().Write(ctx, p.ID, []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for len(seen) < 3 {
		event, err := events.Next(ctx)
		if err != nil {
			t.Fatal(seen, err)
		}
		// The command in the background may still tell its end.
		if event.Process != nil && event.Process.Process.ID == p.ID {
			seen = append(seen, string(event.Process.Type)+" "+string(event.Process.Cause))
		}
	}
	if got := strings.Join(seen, ", "); got != "started , stopped natural_exit, updated " {
		t.Errorf("events: %s", got)
	}
	if got, err := e.Processes().Read(ctx, p.ID, tool.ReadOptions{}); err != nil || string(got.Output) != "got hello\n" {
		t.Errorf("read %q, %v", got.Output, err)
	}

	stopping, cancelCall := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancelCall()
	if _, err := e.Call(stopping, tool.Request{ID: "c", Name: "bash", Arguments: json.RawMessage(`{"command":"sleep 300"}`)}); err == nil {
		t.Error("a call that was cancelled succeeded")
	}
	if err := e.Shutdown(ctx); err != nil {
		t.Errorf("shutdown: %v", err)
	}
}
