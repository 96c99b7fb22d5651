package connection

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// refusal is the error of a dial that must fail for good.
func refusal(t *testing.T, p *Pool, r *Route) *tool.Error {
	t.Helper()
	c, err := p.Dial(t.Context(), r, nil)
	if err == nil {
		c.Close()
		t.Fatal("it was accepted")
	}
	var e *tool.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if e.Retryable || e.Hint == "" || e.Kind != tool.BackendUnavailable {
		t.Fatalf("retryable %v, kind %s, hint %q: %s", e.Retryable, e.Kind, e.Hint, e.Message)
	}
	return e
}

// has wants parts in a text.
func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
}

// TestHostKey: an unknown, a changed and a revoked key are refused with all that
// a person needs to decide; the files are read at each dial.
func TestHostKey(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	shown := s.HostKeys[0].Fingerprint(t)
	other := sshtest.NewKey(t, "ed25519", "")
	c := sshtest.NewClient(t, "", sshtest.HostBlock("box", s, key, "StrictHostKeyChecking no", "NoHostAuthenticationForLocalhost yes"))
	p := newPool(t)
	r := resolve(t, p, c, "box")

	e := refusal(t, p, r)
	has(t, e.Message, "not known", shown, c.KnownHostsFile)
	has(t, e.Hint, fmt.Sprintf("ssh-keyscan -p %d 127.0.0.1 | ssh-keygen -lf -", s.Port), "ssh -F "+c.ConfigFile+" box")
	if e.Path != c.KnownHostsFile {
		t.Errorf("path %q", e.Path)
	}

	c.SetKnownHosts(t, "# ours\n"+s.KnownHost(other))
	e = refusal(t, p, r)
	has(t, e.Message, "has changed", shown, other.Fingerprint(t), c.KnownHostsFile+":2")
	has(t, e.Hint, "ssh-keyscan", "ssh-keygen -f "+c.KnownHostsFile+" -R '["+s.Host+"]:")

	c.SetKnownHosts(t, s.KnownHosts()+"@revoked * "+s.HostKeys[0].Public+"\n")
	e = refusal(t, p, r)
	has(t, e.Message, "revoked", shown, c.KnownHostsFile+":2")

	if err := os.Remove(c.KnownHostsFile); err != nil {
		t.Fatal(err)
	}
	has(t, refusal(t, p, r).Message, "not known")

	c.SetKnownHosts(t, sshtest.HashKnownHosts(t, s.KnownHosts()))
	says(t, dial(t, p, c, "box"), "echo in", "in\n")
}

// TestHostKeyNotKept: where the configuration keeps no keys, to accept one as it says
// would lead nowhere.
func TestHostKeyNotKept(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	for _, none := range []string{os.DevNull, "none"} {
		c := sshtest.NewClient(t, "", sshtest.HostBlock("box", s, key, "StrictHostKeyChecking no", "UserKnownHostsFile "+none))
		p := newPool(t)
		e := refusal(t, p, resolve(t, p, c, "box"))
		has(t, e.Message, "not known")
		has(t, e.Hint, "known_hosts_file in the profile", "ssh -o StrictHostKeyChecking=ask -o UserKnownHostsFile="+filepath.Join(whoami().home, ".ssh", "known_hosts"))
	}
}

// TestHostKeyTypes: the type of which a key is known is asked for.
func TestHostKeyTypes(t *testing.T) {
	t.Parallel()
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, HostKeys: []string{"ed25519", "ecdsa", "rsa"}})
	for i, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := sshtest.NewClient(t, s.KnownHost(s.HostKeys[i]), sshtest.HostBlock("box", s, key))
			says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
		})
	}
	t.Run("another than the server has", func(t *testing.T) {
		t.Parallel()
		s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
		other := sshtest.NewKey(t, "rsa", "")
		c := sshtest.NewClient(t, s.KnownHost(other), sshtest.HostBlock("box", s, key))
		p := newPool(t)
		e := refusal(t, p, resolve(t, p, c, "box"))
		has(t, e.Message, "not known", "ssh-rsa "+other.Fingerprint(t), s.HostKeys[0].Fingerprint(t))
	})
}

// TestHostCertificate: a certificate that an authority signed.
func TestHostCertificate(t *testing.T) {
	t.Parallel()
	key, ca := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ecdsa", "")
	authority := "@cert-authority * " + ca.Public + "\n"
	t.Run("valid", func(t *testing.T) {
		t.Parallel()
		s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, HostCA: &ca, HostNames: []string{"127.0.0.1"}})
		c := sshtest.NewClient(t, authority, sshtest.HostBlock("box", s, key))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
	t.Run("by alias", func(t *testing.T) {
		t.Parallel()
		s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, HostCA: &ca, HostNames: []string{"the-box"}})
		c := sshtest.NewClient(t, authority, sshtest.HostBlock("box", s, key, "HostKeyAlias the-box"))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
	t.Run("expired", func(t *testing.T) {
		t.Parallel()
		s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}, HostCA: &ca, HostNames: []string{"127.0.0.1"}, HostValidity: "-2h:-1h"})
		c := sshtest.NewClient(t, authority, sshtest.HostBlock("box", s, key))
		p := newPool(t)
		has(t, refusal(t, p, resolve(t, p, c, "box")).Message, "expired", c.KnownHostsFile+":1")
	})
}
