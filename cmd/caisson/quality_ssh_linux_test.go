package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestQualitySSH are the rows of [TestQuality] behind a real ssh server.
func TestQualitySSH(t *testing.T) {
	for name, run := range map[string]func(*testing.T, members){
		"ServiceKilled":         testServiceKilled,
		"WorkerKilled":          testWorkerKilled,
		"WorkerKilledUnderCall": testWorkerKilledUnderCall,
		"EnvironmentGone":       testEnvironmentGone,
		"Variables":             testVariables,
		"OlderWorker":           testOlderWorker,
		"ConnectionCut":         testConnectionCut,
		"ClientGone":            testMadeAfterClient,
		"Prune":                 testPrune,
		"Copy":                  testCopy,
		"HostKeys":              testHostKeys,
		"WithoutLandlock":       testWithoutLandlockThere,
		"CleanupError":          testCleanupErrorThere,
	} {
		t.Run(name, func(t *testing.T) { run(t, sshProfile(t)) })
	}
	everyday(t, sshProfile(t))
}

// sshProfile is a profile for a machine of its own: this one, behind a server
// that the test has started, with another home.
func sshProfile(t *testing.T) members {
	t.Helper()
	home := shortDir(t)
	key := sshtest.NewKey(t, "ed25519", "")
	server := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, Lines: []string{"SetEnv HOME=" + home}})
	c := sshtest.NewClient(t, server.KnownHosts(), sshtest.HostBlock("box", server, key))
	return members{
		"backend": "ssh", "host": "box", "ssh_config": c.ConfigFile, "known_hosts_file": c.KnownHostsFile,
		"workspace": filepath.Join(home, "environments"), "max_permission_mode": "unconfined",
	}
}

// A machine without Landlock runs no confined command, and a check knows, unless the
// profile needs none.
func testWithoutLandlockThere(t *testing.T, profile members) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	worker := filepath.Join(shortDir(t), "worker")
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' %s '%s' \"$@\"\n", self, withoutLandlock, filepath.Join(programDir, "caisson"))
	if err := os.WriteFile(worker, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	profile["worker"] = worker
	everywhere := maps.Clone(profile)
	everywhere["writable_paths"] = []string{"/"}
	p := newPlace(t, members{"it": profile, "everywhere": everywhere})
	s := p.serve()
	s.open("it", "free").withoutLandlock()
	p.finds("Landlock", "profile", "check", "it")
	if got := s.open("everywhere", "open").sh("echo runs"); got != "runs\n" {
		t.Errorf("where everything is writable: %q", got)
	}
	p.finds("", "profile", "check", "everywhere")
}

// An environment on another machine in which a worker does not end is kept, with all that
// the service knows of it, until it does.
func testCleanupErrorThere(t *testing.T, profile members) {
	profile["shutdown_timeout_ms"] = 1000
	p := newPlace(t, members{"it": profile})
	w := p.serve().open("it", "stuck")
	w.call("write_file", members{"path": "evidence", "content": "what it was doing"})
	state := filepath.Join(w.directory(), "state")
	// A worker lives for as long as its lock is held.
	lock, err := endpoint.Acquire(p.ctx(), worker.LockPath(state, "another"))
	if err != nil {
		t.Fatal(err)
	}
	free := sync.OnceValue(lock.Unlock)
	defer func() { _ = free() }() // the clean-up of the place must not wait for it
	kept := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(explain(err), "session another") {
			t.Errorf("%s of what does not end: %v", what, explain(err))
		}
		for _, path := range []string{
			filepath.Join(p.state(), "sessions", "stuck", "binding.json"), filepath.Join(p.state(), "sessions", "stuck", "token"),
			filepath.Join(p.state(), "environments", w.session.EnvironmentID, "provisioned"),
			filepath.Join(w.session.Root, "evidence"), filepath.Join(w.directory(), "environment.json"), filepath.Join(state, "sessions"),
		} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	_, err = w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: "stuck"})
	kept("close", err)
	w = w.service.open("it", "stuck")
	if got := w.sh("cat evidence"); got != "what it was doing" {
		t.Errorf("the workspace holds %q", got)
	}
	_, err = w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck"})
	kept("delete", err)
	directory := w.directory()
	if err := free(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck"}); err != nil {
		t.Errorf("delete, afterwards: %s", explain(err))
	}
	for _, path := range []string{directory, filepath.Join(p.state(), "sessions", "stuck")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("left: %s, %v", path, err)
		}
	}
}

// shortDir is a temporary directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cqs") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// directory is that of the session's environment on the machine behind ssh.
func (w *work) directory() string { return filepath.Dir(w.session.Root) }

// A host key that is unknown, or another one, is refused, with the file and the
// line; nobody is asked, and nothing is written down.
func testHostKeys(t *testing.T, profile members) {
	file := profile["known_hosts_file"].(string)
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	name, _, _ := strings.Cut(string(before), " ")
	other := sshtest.NewKey(t, "ed25519", "")
	for what, known := range map[string]string{"unknown": "# nobody\n", "changed": "# the first line\n" + name + " " + other.Public + "\n"} {
		if err := os.WriteFile(file, []byte(known), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := newPlace(t, members{"it": profile}).serve().tryOpen("it", what)
		said := explain(err)
		if err == nil || !strings.Contains(said, file) || what == "changed" && !strings.Contains(said, file+":2") {
			t.Errorf("%s: it says %s", what, said)
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != known {
			t.Errorf("%s: the file is %q now, %v", what, now, err)
		}
	}
	if err := os.WriteFile(file, before, 0o600); err != nil {
		t.Fatal(err)
	}
	w := newPlace(t, members{"it": profile}).serve().open("it", "known")
	if got := w.sh("echo in"); got != "in\n" || w.session.State != protocol.SessionReady {
		t.Errorf("%q, %+v", got, w.session)
	}
}
