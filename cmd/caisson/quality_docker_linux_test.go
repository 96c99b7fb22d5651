package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// A container in which nothing can be ended, since it is paused, is kept with all
// that belongs to it until it can be, or until somebody insists.
func testCleanupError(t *testing.T, profile members) {
	profile["shutdown_timeout_ms"] = 1000
	p := newPlace(t, members{"it": profile})
	w := p.serve().open("it", "stuck")
	w.call("write_file", members{"path": "evidence", "content": "what it was doing"})
	w.background("exec sleep 1000")
	environment := w.session.EnvironmentID
	before := p.made()
	dockertest.Docker(t, "pause", environment)
	kept := func(what string, err error) {
		t.Helper()
		if err == nil {
			t.Fatalf("%s of what cannot be ended succeeds", what)
		}
		if now := p.made(); now != before {
			t.Errorf("%s: there is\n%sand was\n%s", what, now, before)
		}
		for _, path := range []string{
			filepath.Join("sessions", "stuck", "binding.json"), filepath.Join("sessions", "stuck", "token"),
			filepath.Join("environments", environment, "provisioned"),
		} {
			if _, err := os.Stat(filepath.Join(p.state(), path)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	// It can be looked into, and goes on, after each.
	again := func() {
		t.Helper()
		dockertest.Docker(t, "unpause", environment)
		w = w.service.open("it", "stuck")
		if got := w.sh("cat evidence"); got != "what it was doing" {
			t.Errorf("the workspace holds %q", got)
		}
		dockertest.Docker(t, "pause", environment)
	}
	_, err := w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: "stuck"})
	kept("close", err)
	again()
	_, err = w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck"})
	kept("delete", err)
	again()
	out, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck", Force: true})
	if err != nil || out.Left != "" {
		t.Errorf("a forced delete: %q, %s", out.Left, explain(err))
	}
	if left := p.made(); left != "" {
		t.Errorf("a forced delete leaves %s", left)
	}
}

// With a container for each call nothing of a call outlives the service that
// made it, however that ends, and the workspace does.
func testPerCall(t *testing.T, profile members) {
	profile["container_policy"] = "per_call"
	p := newPlace(t, members{"it": profile})
	w := p.serve().open("it", "each")
	if got := w.sh("echo one > file; echo $PPID"); got != "1\n" {
		t.Errorf("the shell's parent is %q", got)
	}
	result := inFlight(w, "")
	p.until("the command to begin", func() bool {
		_, err := w.FileStat(w.ctx(), protocol.FileParams{SessionID: "each", Path: "begun"})
		return err == nil
	})
	if made := p.made(); strings.Count(made, "container ") != 2 {
		t.Errorf("during a call there is %s", made)
	}
	w.service.kill()
	<-result
	p.until("the end of the call's container", func() bool { return strings.Count(p.made(), "container ") == 1 })

	w = p.serve().open("it", "each")
	if got := w.sh("cat file log"); got != "one\nonce\n" {
		t.Errorf("the files hold %q", got)
	}
	_, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: "each", Command: "sleep 1000"})
	if e := p.kind(protocol.KindUnsupported, "a process", err); !strings.Contains(e.Data.Hint, "per_session") {
		t.Errorf("it says %s", explain(err))
	}
	if _, err := w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: "each"}); err != nil {
		t.Errorf("close: %s", explain(err))
	}
	if left := p.made(); left != "" {
		t.Errorf("close leaves %s", left)
	}
}

// The opened folder is in the container from the beginning, and stays what it is.
func testCopy(t *testing.T, profile members) {
	profile["workspace_source"] = "copy"
	p := newPlace(t, members{"it": profile})
	for name, content := range map[string]string{".gitignore": "secret\n", "secret": "s", "file": "from the folder"} {
		if err := os.WriteFile(filepath.Join(p.folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := p.serve().open("it", "copy")
	if got := w.sh("cat file; ls -A; echo changed > file"); got != "from the folder.gitignore\nfile\n" {
		t.Errorf("the container has %q", got)
	}
	w.service.kill()
	w = p.serve().open("it", "copy")
	if got := w.sh("cat file"); got != "changed\n" {
		t.Errorf("after resuming: %q", got)
	}
	if content, err := os.ReadFile(filepath.Join(p.folder, "file")); err != nil || string(content) != "from the folder" {
		t.Errorf("the folder's file is %q, %v", content, err)
	}
	raw, err := json.Marshal(w.session)
	if err != nil || strings.Contains(string(raw), "secret") {
		t.Errorf("%s, %v", raw, err)
	}
}
