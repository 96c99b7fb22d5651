package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sourcegraph/jsonrpc2"

	"github.com/caisson-dev/caisson/session/config"
)

// What happens in a service is in its event log when it has ended: calls and
// refusals, with nothing of what they were given.
func TestEventLog(t *testing.T) {
	runtimeDir, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runtimeDir)
	dir, folder := t.TempDir(), t.TempDir()
	log := filepath.Join(dir, "events.jsonl")
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{
		"guard": {"rules": [{"tools": ["shell.*"], "match": {"command": "curl*"}, "action": "deny", "reason": "no MY_TOKEN=hush-in-reason"}]}
	}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "serve", "--event-log", log, "--config", filepath.Join(dir, "config.json"))
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+runtimeDir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG=")
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	ignore := jsonrpc2.HandlerWithError(func(context.Context, *jsonrpc2.Conn, *jsonrpc2.Request) (any, error) { return nil, nil })
	conn := jsonrpc2.NewConn(t.Context(), jsonrpc2.NewBufferedStream(pipes{out, in}, jsonrpc2.VSCodeObjectCodec{}), ignore)
	call := func(method string, params any) error {
		return conn.Call(t.Context(), method, params, nil)
	}
	run := func(id, command string) error {
		return call("tool/call", map[string]any{"sessionId": "s1", "callId": id, "name": "bash", "arguments": map[string]any{"command": command}, "runId": "run-7"})
	}
	if err := errors.Join(
		call("initialize", map[string]any{"processId": os.Getpid()}),
		call("session/open", map[string]any{"sessionId": "s1", "workspace": "file://" + folder}),
		run("c1", "echo hush-in-command"),
		call("process/start", map[string]any{"sessionId": "s1", "command": "echo hush-in-process"}),
	); err != nil {
		t.Fatal(err)
	}
	if err := run("c2", "curl hush-in-refusal"); err == nil {
		t.Error("it was not refused")
	}
	if err := errors.Join(call("session/close", map[string]any{"sessionId": "s1"}), call("shutdown", nil), conn.Notify(t.Context(), "exit", nil)); err != nil {
		t.Error(err)
	}
	<-conn.DisconnectNotify() // the pipe must be read to its end before Wait
	if err := cmd.Wait(); err != nil {
		t.Errorf("the service ended with %v", err)
	}

	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("hush")) {
		t.Errorf("what a call was given is in the log:\n%s", text)
	}
	var seen []string
	for line := range bytes.Lines(text) {
		var e struct {
			Event, SessionID, CallID, RunID, Tool string
			Failure                               struct{ Kind, Message string }
			Process                               struct{ Type string }
		}
		if err := json.Unmarshal(line, &e); err != nil || e.SessionID != "s1" {
			t.Errorf("%s: %v", line, err)
		}
		seen = append(seen, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", e.Event, e.CallID, e.Failure.Kind, e.Process.Type)))
		if e.CallID == "c1" && (e.RunID != "run-7" || e.Tool != "bash") {
			t.Errorf("the call is %s", line)
		}
	}
	for _, want := range []string{"session/changed", "execution/started c1", "execution/completed c1", "execution/started c2", "execution/failed c2 denied", "process/event   started", "process/event   exited"} {
		if !slices.Contains(seen, want) {
			t.Errorf("there is no %q among %q", want, seen)
		}
	}
}

func TestSecretValues(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(file, []byte(`{"execution_environments": {"profiles": {"box": {"backend": "docker", "image": "a", "env": {"A": "literal"}, "forward_env": ["FORWARDED"]}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var source config.Source = config.File(file)
	got := secretValues(&source, []string{"FORWARDED=forwarded", "MY_TOKEN=token", "OTHER=other", "=x"})
	if want := []string{"literal", "forwarded", "token"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := secretValues(nil, nil); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
