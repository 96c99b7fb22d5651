package connection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// command is a ProxyCommand that needs nothing but bash.
const command = "ProxyCommand bash -c 'exec 3<>/dev/tcp/%h/%p; cat <&3 & exec cat >&3'"

// TestMaster: a connection of OpenSSH's does what one of ours does.
func TestMaster(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, HostKeys: []string{"ed25519", "ecdsa"}})
	// What would have a shared connection end, wait, speak otherwise, or learn
	// the server's other keys.
	known := s.KnownHost(s.HostKeys[0])
	c := sshtest.NewClient(t, known, sshtest.HostBlock("box", s, key, command,
		"UpdateHostKeys yes", "ForkAfterAuthentication yes", "RemoteCommand echo no", "ControlMaster auto", "ControlPath /tmp/never-%C", "ControlPersist yes",
		"LocalForward 1 127.0.0.1:1", "ExitOnForwardFailure yes", "RequestTTY force", "PermitLocalCommand yes", "LocalCommand touch %d/never", "SetEnv SSHTEST_A=b"))
	p := newPool(t)
	conn := dial(t, p, c, "box")
	says(t, conn, "echo $SSHTEST_A", "b\n")
	f, err := conn.SFTP(t.Context())
	if err != nil {
		t.Fatal(explain(err))
	}
	file := filepath.Join(t.TempDir(), "f")
	w, err := f.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	data := strings.Repeat("0123456789abcdef", 1<<17)
	if _, err := w.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != data {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(c.KnownHostsFile); err != nil || string(got) != known {
		t.Errorf("the known hosts were changed: %q, %v", got, err)
	}
	stream, err := conn.Exec(t.Context(), "cat")
	if err != nil {
		t.Fatal(err)
	}
	s.Drop()
	wantLost(t, stream)
}

// TestMasterRefusals: what OpenSSH refuses is said as if we had.
func TestMasterRefusals(t *testing.T) {
	t.Parallel()
	key, stranger := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	for _, tt := range []struct {
		name, known string
		key         sshtest.Key
		message     []string
		hint        string
	}{
		{"unknown host", "", key, []string{"host key", "is not known", s.HostKeys[0].Fingerprint(t), "known_hosts"}, "ssh-keyscan"},
		{"changed host", s.KnownHost(stranger), key, []string{"has changed", s.HostKeys[0].Fingerprint(t), stranger.Fingerprint(t), "known_hosts:1"}, "ssh-keygen -f"},
		{"unknown key", s.KnownHosts(), stranger, []string{"Permission denied (publickey)"}, "ssh-copy-id"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := sshtest.NewClient(t, tt.known, sshtest.HostBlock("box", s, tt.key, command, "StrictHostKeyChecking no", "UpdateHostKeys yes"))
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, c, "box"))
			has(t, e.Message, tt.message...)
			has(t, e.Hint, tt.hint)
			if got, err := os.ReadFile(c.KnownHostsFile); err != nil || string(got) != tt.known {
				t.Errorf("the known hosts were changed: %q, %v", got, err)
			}
		})
	}
	t.Run("unreachable", func(t *testing.T) {
		t.Parallel()
		// What ends without a word might be a server that is busy, but is run once only.
		runs := filepath.Join(t.TempDir(), "runs")
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, "ProxyCommand sh -c 'echo >>"+runs+"; read said'"))
		p := newPool(t)
		_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
		wantRetryable(t, err, "OpenSSH cannot reach")
		if out, err := os.ReadFile(runs); err != nil || string(out) != "\n" {
			t.Errorf("the ProxyCommand was run %d times, %v", len(out), err)
		}
		has(t, explain(err), "its ProxyCommand ended", "whether the ProxyCommand works")
	})
	t.Run("silent", func(t *testing.T) {
		t.Parallel()
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, "ProxyCommand sleep 600", "ConnectTimeout 1"))
		p := newPool(t)
		_, err := p.Dial(t.Context(), resolve(t, p, c, "box"), nil)
		wantRetryable(t, err, "")
	})
}

// TestStuckIn: a master that does not come to an end tells by what it said last
// whether it is the agent that it waits for.
func TestStuckIn(t *testing.T) {
	t.Parallel()
	const (
		begun   = "debug1: SSH2_MSG_NEWKEYS sent\ndebug1: SSH2_MSG_NEWKEYS received\ndebug1: rekey in after 134217728 blocks\n"
		asked   = begun + "debug1: Will attempt key: k ED25519 SHA256:x agent\ndebug1: SSH2_MSG_SERVICE_ACCEPT received\n"
		accepts = asked + "debug1: Server accepts key: k ED25519 SHA256:x agent\n"
		through = accepts + "Authenticated to jump ([127.0.0.1]:22) using \"publickey\".\n"
	)
	for text, want := range map[string]string{
		"":                                 "",
		"debug1: Connecting to box\n":      "",
		begun:                              "does not say which keys",
		asked:                              "",
		accepts:                            "does not sign",
		through:                            "",
		through + "debug1: kex: algorithm": "",
		through + begun:                    "does not say which keys",
		through + accepts:                  "does not sign",
	} {
		if got := stuckIn(text); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q, of %s", got, want, text)
		}
	}
}
