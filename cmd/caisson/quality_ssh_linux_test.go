package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestQualitySSH are the rows of [TestQuality] behind a real ssh server.
func TestQualitySSH(t *testing.T) {
	for name, run := range map[string]func(*testing.T, members){
		"ServiceKilled":   testServiceKilled,
		"WorkerKilled":    testWorkerKilled,
		"EnvironmentGone": testEnvironmentGone,
		"Variables":       testVariables,
		"OlderWorker":     testOlderWorker,
		"ConnectionCut":   testConnectionCut,
		"ClientGone":      testMadeAfterClient,
		"Prune":           testPrune,
		"Copy":            testCopy,
		"HostKeys":        testHostKeys,
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
