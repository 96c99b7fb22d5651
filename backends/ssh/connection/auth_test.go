package connection

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// TestKeys: every kind of key, in a file and in an agent.
func TestKeys(t *testing.T) {
	t.Parallel()
	var keys []sshtest.Key
	kinds := []string{"ed25519", "ecdsa", "rsa"}
	for _, kind := range kinds {
		keys = append(keys, sshtest.NewKey(t, kind, ""))
	}
	s := sshtest.Start(t, sshtest.Options{Authorized: keys})
	for i, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, keys[i]))
			says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
		})
		t.Run(kind+" in an agent", func(t *testing.T) {
			t.Parallel()
			agent := sshtest.StartAgent(t, keys[i])
			c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{}, "IdentitiesOnly no", "IdentityAgent "+agent.Socket, "IdentityFile none"))
			says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
		})
	}
	t.Run("only the public half in a file", func(t *testing.T) {
		t.Parallel()
		agent := sshtest.StartAgent(t, keys[0])
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{File: keys[0].File + ".pub"}, "IdentityAgent "+agent.Socket))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
	t.Run("RSA with SHA-2 refused here", func(t *testing.T) {
		t.Parallel()
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, keys[2], "PubkeyAcceptedAlgorithms ssh-ed25519"))
		p := newPool(t)
		has(t, refusal(t, p, resolve(t, p, c, "box")).Message, "no key to offer")
	})
	t.Run("several identities", func(t *testing.T) {
		t.Parallel()
		wrong := sshtest.NewKey(t, "ed25519", "")
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, wrong, "IdentityFile /nonexistent", "IdentityFile "+keys[1].File))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
}

// TestAgentByVariable: the agent of SSH_AUTH_SOCK, unless IdentityAgent is none.
func TestAgentByVariable(t *testing.T) {
	key := sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	agent := sshtest.StartAgent(t, key)
	t.Setenv("SSH_AUTH_SOCK", agent.Socket)
	t.Setenv("SSHTEST_AGENT", agent.Socket)
	p := newPool(t)
	for _, value := range []string{"SSH_AUTH_SOCK", "$SSHTEST_AGENT", "${SSHTEST_AGENT}"} {
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{}, "IdentitiesOnly no", "IdentityFile none", "IdentityAgent "+value))
		says(t, dial(t, p, c, "box"), "echo in", "in\n")
	}
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{}, "IdentitiesOnly no", "IdentityFile none", "IdentityAgent none"))
	has(t, refusal(t, p, resolve(t, p, c, "box")).Message, "no key to offer")
}

// TestManyAgentKeys: the configured key comes first, and IdentitiesOnly leaves
// the others out.
func TestManyAgentKeys(t *testing.T) {
	t.Parallel()
	var keys []sshtest.Key
	for range 7 {
		keys = append(keys, sshtest.NewKey(t, "ed25519", ""))
	}
	right := keys[6]
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{right}, Lines: []string{"MaxAuthTries 3"}})
	agent := sshtest.StartAgent(t, keys...)
	use := "IdentityAgent " + agent.Socket
	p := newPool(t)
	for _, only := range []string{"yes", "no"} {
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, right, use, "IdentitiesOnly "+only))
		says(t, dial(t, p, c, "box"), "echo in", "in\n")
	}
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{}, use, "IdentitiesOnly no", "IdentityFile none"))
	e := refusal(t, p, resolve(t, p, c, "box"))
	has(t, e.Message, "hung up after")
	has(t, e.Hint, "IdentitiesOnly")
	// What was not asked for is not offered, even if it is right.
	agent = sshtest.StartAgent(t, right)
	c = sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, keys[0], "IdentityAgent "+agent.Socket, "IdentitiesOnly yes"))
	has(t, refusal(t, p, resolve(t, p, c, "box")).Message, "accepts none of the keys", keys[0].Fingerprint(t))
}

// TestUserCertificate: beside its key, named by CertificateFile, and in an
// agent.
func TestUserCertificate(t *testing.T) {
	t.Parallel()
	ca := sshtest.NewKey(t, "ecdsa", "")
	s := sshtest.Start(t, sshtest.Options{UserCA: &ca})
	for _, kind := range []string{"ed25519", "rsa"} {
		key := sshtest.NewKey(t, kind, "")
		certificate := key.SignUser(t, ca, s.User)
		moved := filepath.Join(t.TempDir(), "certificate")
		data, err := os.ReadFile(certificate)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(moved, data, 0o600); err != nil {
			t.Fatal(err)
		}
		agent := sshtest.StartAgent(t, key) // takes the certificate too
		p := newPool(t)
		c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key))
		says(t, dial(t, p, c, "box"), "echo in", "in\n")
		c = sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, sshtest.Key{}, "IdentitiesOnly no", "IdentityFile none", "IdentityAgent "+agent.Socket))
		says(t, dial(t, p, c, "box"), "echo in", "in\n")
		if err := os.Remove(certificate); err != nil {
			t.Fatal(err)
		}
		c = sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, "CertificateFile "+moved))
		says(t, dial(t, p, c, "box"), "echo in", "in\n")
	}
}

// TestRefusedAuthentication: each refusal says what to do about it.
func TestRefusedAuthentication(t *testing.T) {
	t.Setenv("SSH_ASKPASS", "")
	key, stranger := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ed25519", "")
	encrypted := sshtest.NewKey(t, "ed25519", "a passphrase")
	open, openEncrypted := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ed25519", "a passphrase")
	for file, mode := range map[string]os.FileMode{open.File: 0o604, openEncrypted.File: 0o620} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	all := []sshtest.Key{key, encrypted, open, openEncrypted}
	plain := sshtest.Start(t, sshtest.Options{Authorized: all})
	passwords := sshtest.Start(t, sshtest.Options{Authorized: all, Lines: []string{"PubkeyAuthentication no", "PasswordAuthentication yes"}})
	second := sshtest.Start(t, sshtest.Options{Authorized: all, Lines: []string{"AuthenticationMethods publickey,password", "PasswordAuthentication yes"}})
	for _, tt := range []struct {
		name          string
		server        *sshtest.Server
		key           sshtest.Key
		message, hint []string
	}{
		{"unknown key", plain, stranger, []string{"accepts none of the keys", stranger.Fingerprint(t), stranger.File, "publickey"}, []string{"ssh-keygen -t ed25519", fmt.Sprintf("-p %d", plain.Port), "ssh-copy-id", plain.User + "@box"}},
		{"encrypted key", plain, encrypted, []string{"would accept the key", encrypted.File, "encrypted"}, []string{"ssh-add " + encrypted.File}},
		{"key that others may read", plain, open, []string{"would accept the key", open.File, "others may read", "0604"}, []string{"chmod 600 " + open.File}},
		{"encrypted key that others may write", plain, openEncrypted, []string{"would accept the key", openEncrypted.File, "others may", "0620"}, []string{"chmod 600 " + openEncrypted.File}},
		{"passwords alone", passwords, key, []string{"does not take keys", "it takes password"}, []string{"ssh-copy-id", "SSH_ASKPASS"}},
		{"second factor", second, key, []string{"accepts publickey", "second factor (password)"}, []string{"SSH_ASKPASS"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := sshtest.NewClient(t, tt.server.KnownHosts(), sshtest.HostBlock("box", tt.server, tt.key))
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, c, "box"))
			has(t, e.Message, tt.message...)
			has(t, e.Hint, tt.hint...)
		})
	}
	t.Run("encrypted key in an agent", func(t *testing.T) {
		// ssh-add asks, so that it is the one in the agent that is not encrypted.
		agent := sshtest.StartAgent(t, key)
		c := sshtest.NewClient(t, plain.KnownHosts(), sshtest.HostBlock("box", plain, encrypted, "IdentitiesOnly no", "IdentityAgent "+agent.Socket))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
	t.Run("key that others may read in an agent", func(t *testing.T) {
		agent := sshtest.StartAgent(t, key)
		shared := key
		shared.File = filepath.Join(t.TempDir(), "key")
		data, err := os.ReadFile(key.File)
		if err == nil {
			err = os.WriteFile(shared.File, data, 0o600)
		}
		if err == nil {
			err = os.Chmod(shared.File, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := sshtest.NewClient(t, plain.KnownHosts(), sshtest.HostBlock("box", plain, shared, "IdentityAgent "+agent.Socket))
		says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
	})
	t.Run("identity of the profile", func(t *testing.T) {
		c := sshtest.NewClient(t, plain.KnownHosts(), sshtest.HostBlock("box", plain, key))
		p := newPool(t)
		r, err := p.Resolve(t.Context(), Destination{Host: "box", ConfigFile: c.ConfigFile, IdentityFile: "/nonexistent/key"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Dial(t.Context(), r, nil); err == nil || !strings.Contains(err.Error(), "/nonexistent/key") {
			t.Fatalf("got %v", err)
		}
	})
}

// TestUnusableKeys: of a configured key that is not offered it is said why, and the
// way to a new one names its file, since no other would be offered.
func TestUnusableKeys(t *testing.T) {
	t.Setenv("SSH_ASKPASS", "")
	key, encrypted := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ecdsa", "a passphrase")
	if out, err := exec.Command("ssh-keygen", "-p", "-m", "PKCS8", "-P", "a passphrase", "-N", "a passphrase", "-f", encrypted.File).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ca := sshtest.NewKey(t, "ed25519", "")
	certified := sshtest.NewKey(t, "ed25519", "")
	certified.SignUser(t, ca, "somebody")
	dir := t.TempDir()
	missing, garbage := sshtest.Key{File: filepath.Join(dir, "missing")}, sshtest.Key{File: filepath.Join(dir, "garbage")}
	if err := os.WriteFile(garbage.File, []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{encrypted}, UserCA: &ca})
	for _, tt := range []struct {
		name, line string
		key        sshtest.Key
		message    []string
		hint       string
	}{
		{"missing", "", missing, []string{"no key to offer", "cannot be used: " + missing.File + " is not there"}, "-f " + missing.File},
		{"garbage", "", garbage, []string{"no key to offer", "cannot be used: " + garbage.File + ": ssh: no key found"}, "see to that file"},
		{"a directory", "", sshtest.Key{File: dir}, []string{"no key to offer", "cannot be used: " + dir + ": is a directory"}, "see to that file"},
		{"beside another", "IdentityFile " + missing.File, key, []string{"accepts none of the keys", key.File, missing.File + " is not there"}, "-f " + key.File},
		{"of a type that is switched off", "PubkeyAcceptedAlgorithms rsa-sha2-512", key, []string{key.File + ": ssh-ed25519 is not among PubkeyAcceptedAlgorithms"}, ""},
		{"encrypted as PKCS #8", "", encrypted, []string{"would accept the key", "it is encrypted"}, "ssh-add " + encrypted.File},
		{"certificate for somebody else", "", certified, []string{"-cert.pub), which is for somebody, "}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lines := []string{"IdentityAgent none"}
			if tt.line != "" {
				lines = append(lines, tt.line)
			}
			c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, tt.key, lines...))
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, c, "box"))
			has(t, e.Message, tt.message...)
			has(t, e.Hint, tt.hint)
		})
	}
}

// TestCertificateFlaw: what a host will not like about a certificate.
func TestCertificateFlaw(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for want, c := range map[string]ssh.Certificate{
		"":                                 {CertType: ssh.UserCert, ValidAfter: 999_999, ValidBefore: ssh.CertTimeInfinity, ValidPrincipals: []string{"other", "me"}},
		", which is no user's certificate": {CertType: ssh.HostCert, ValidBefore: ssh.CertTimeInfinity},
		", which has expired on 1970-01-12T13:46:40Z":   {CertType: ssh.UserCert, ValidBefore: 1_000_000},
		", which is valid from 1970-01-12T13:46:41Z on": {CertType: ssh.UserCert, ValidAfter: 1_000_001, ValidBefore: ssh.CertTimeInfinity},
		", which is for other, yet another":             {CertType: ssh.UserCert, ValidBefore: ssh.CertTimeInfinity, ValidPrincipals: []string{"other", "yet another"}},
	} {
		if got := (identity{public: &c}).flaw("me", now); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestMuteAgent: an agent that does not answer costs a moment, and is told of where
// it would have been of use; so is one that does not sign.
func TestMuteAgent(t *testing.T) {
	t.Setenv("SSH_ASKPASS", "")
	key, stranger := sshtest.NewKey(t, "ed25519", ""), sshtest.NewKey(t, "ed25519", "")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	agent := sshtest.StartAgent(t, key)
	mute, lists := sshtest.StartMute(t, agent, 0), sshtest.StartMute(t, agent, 1)
	client := func(key sshtest.Key, agent string) *sshtest.Client {
		return sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key, "IdentitiesOnly no", "ConnectTimeout 2", "IdentityAgent "+agent))
	}
	says(t, dial(t, newPool(t), client(key, mute), "box"), "echo in", "in\n")
	for name, tt := range map[string]struct {
		agent         string
		message, hint []string
	}{
		"mute":          {mute, []string{"accepts none of the keys", stranger.File, "agent cannot be asked", mute}, []string{"ssh-copy-id"}},
		"not there":     {"/nonexistent", []string{"agent cannot be asked", "/nonexistent"}, []string{"ssh-copy-id"}},
		"does not sign": {lists, []string{"would accept the key", "(agent)", "longer than 2s"}, []string{"waits for leave"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, client(stranger, tt.agent), "box"))
			has(t, e.Message, tt.message...)
			has(t, e.Hint, tt.hint...)
		})
	}
}

// TestAskpass: what a person has to be asked for is OpenSSH's, with the user's
// program for it.
func TestAskpass(t *testing.T) {
	key := sshtest.NewKey(t, "ed25519", "a passphrase")
	s := sshtest.Start(t, sshtest.Options{Authorized: []sshtest.Key{key}})
	program := filepath.Join(t.TempDir(), "askpass")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho a passphrase\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSH_ASKPASS", program)
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	c := sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key))
	says(t, dial(t, newPool(t), c, "box"), "echo in", "in\n")
}
