package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// begin opens a session on a profile.
func begin(t *testing.T, p profile.Profile) backends.Environment {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	e, err := command.New(command.Options{}).Open(ctx, backends.Binding{
		Session: "s", Environment: "caisson-1", Profile: p,
		Secrets: backends.Secrets{Token: strings.Repeat("5e", 32), Environment: map[string]string{"HIDDEN": "s3cr3t-value"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Detach(context.Background()) })
	return e
}

// journaled are the lines of the profile's log.
func journaled(t *testing.T, p profile.Profile) (all []entry) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(filepath.Dir(p.Workspace), "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("s3cr3t")) {
		t.Errorf("the log holds a secret: %s", raw)
	}
	for lines := bufio.NewScanner(bytes.NewReader(raw)); lines.Scan(); {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		all = append(all, e)
	}
	return all
}

func TestLog(t *testing.T) { testLog(t, newProfile(t, tool.Standard, tool.Standard)) }

func testLog(t *testing.T, p profile.Profile) {
	e := begin(t, p)
	helper := tool.Actor{ID: "helper", Kind: tool.ActorSubagent}
	_, err := e.Call(t.Context(), tool.Request{ID: "c", Name: "read_file", Arguments: []byte(`{"path":"none"}`), Actor: helper, Mode: tool.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Processes().Start(t.Context(), tool.StartRequest{OperationID: "o", Argv: []string{"echo", "hi"}, Actor: "s"}); err != nil {
		t.Fatal(err)
	}
	if err := e.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	find := func(event, method string) entry {
		t.Helper()
		for _, e := range journaled(t, p) {
			if e.Event == event && e.Method == method {
				return e
			}
		}
		t.Fatalf("no %s of %s in %+v", event, method, journaled(t, p))
		panic("unreachable")
	}
	if e := find("begin", "initialize"); e.Session != "s" || e.Root != p.Workspace {
		t.Errorf("%+v", e)
	}
	if e := find("begin", "execute"); e.Tool != "read_file" || e.Actor != "helper" || e.Mode != tool.ReadOnly || e.Session != "s" {
		t.Errorf("%+v", e)
	}
	if e := find("begin", "process/start"); e.Command != "echo hi" || e.Actor != "s" {
		t.Errorf("%+v", e)
	}
	find("end", "execute")
	find("end", "shutdown")
}

// TestNothingWithoutTheLog: what cannot be logged is not done.
func TestNothingWithoutTheLog(t *testing.T) {
	testNothingWithoutTheLog(t, newProfile(t, tool.Standard, tool.Standard))
}

func testNothingWithoutTheLog(t *testing.T, p profile.Profile) {
	for i, arg := range p.Command {
		if arg == "-log" || arg == "--log" {
			p.Command[i+1] = "/dev/full"
		}
	}
	_, err := command.New(command.Options{}).Open(t.Context(), backends.Binding{Session: "s", Environment: "caisson-1", Profile: p, Secrets: backends.Secrets{Token: strings.Repeat("5e", 32)}}, nil)
	if tool.KindOf(err) != tool.Denied || !strings.Contains(err.Error(), "audit log") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(p.Workspace); err == nil {
		t.Error("a workspace was made")
	}
}

// TestPeerDies: when the worker behind the adapter dies, the adapter ends at once,
// what was in flight is of unknown outcome, and both begin anew.
func TestPeerDies(t *testing.T) { testPeerDies(t, newProfile(t, tool.Unconfined, tool.Unconfined)) }

func testPeerDies(t *testing.T, p profile.Profile) {
	e := begin(t, p)
	bash := func(line string) (string, error) {
		raw, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			t.Fatal(err)
		}
		r, err := e.Call(t.Context(), tool.Request{ID: "c", Name: "bash", Arguments: raw})
		return string(r.StructuredContent), err
	}
	_, err := bash("echo kept > f; kill -KILL $PPID")
	if tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatalf("%v (%s)", err, tool.KindOf(err))
	}
	if out, err := bash("cat f"); err != nil || !strings.Contains(out, "kept") {
		t.Errorf("%s, %v", out, err)
	}
	if err := errors.Join(e.Shutdown(t.Context()), e.Detach(t.Context())); err != nil {
		t.Error(err)
	}
	if left := processes(t, filepath.Dir(p.Workspace)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}
