package connection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
)

// answered makes what a person answers when OpenSSH asks, and gives the file in which
// the questions are.
func answered(t *testing.T, answer string) (questions string) {
	t.Helper()
	dir := t.TempDir()
	questions = filepath.Join(dir, "questions")
	script(t, filepath.Join(dir, "askpass"), `printf '%s\n' "$1" >>`+Quote(questions)+"\necho "+Quote(answer)+"\n")
	t.Setenv("SSH_ASKPASS", filepath.Join(dir, "askpass"))
	t.Setenv("SSH_ASKPASS_REQUIRE", "force")
	return questions
}

func script(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// TestAsRootKeyboardInteractive: what a machine asks a person through PAM, alone or
// after the key, is asked by the user's program for that, once; and a wrong answer,
// and one that nobody can give, are said.
func TestAsRootKeyboardInteractive(t *testing.T) {
	key := sshtest.NewKey(t, "ed25519", "")
	check := filepath.Join(t.TempDir(), "check")
	script(t, check, `[ "$(tr -d '\0')" = "the right word" ]`+"\n")
	start := func(methods string) *sshtest.Server {
		return sshtest.Start(t, sshtest.Options{
			Authorized: []sshtest.Key{key},
			PAM: "auth requisite pam_exec.so quiet expose_authtok " + check + "\n" +
				"auth required pam_permit.so\naccount required pam_permit.so\nsession required pam_permit.so\n",
			Lines: []string{"KbdInteractiveAuthentication yes", "AuthenticationMethods " + methods},
		})
	}
	for name, s := range map[string]*sshtest.Server{
		"alone": start("keyboard-interactive"), "after the key": start("publickey,keyboard-interactive"),
	} {
		client := func(t *testing.T) *sshtest.Client {
			return sshtest.NewClient(t, s.KnownHosts(), sshtest.HostBlock("box", s, key))
		}
		t.Run(name, func(t *testing.T) {
			questions := answered(t, "the right word")
			p, c := newPool(t), client(t)
			says(t, dial(t, p, c, "box"), "echo in", "in\n")
			says(t, dial(t, p, c, "box"), "echo again", "again\n")
			got, err := os.ReadFile(questions)
			if err != nil || strings.Count(string(got), "Password: ") != 1 {
				t.Errorf("asked %q, %v", got, err)
			}
		})
		t.Run(name+", answered wrongly", func(t *testing.T) {
			answered(t, "another word")
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, client(t), "box"))
			has(t, e.Message, "Permission denied (", "keyboard-interactive")
			has(t, e.Hint, "SSH_ASKPASS")
		})
		t.Run(name+", with nobody to ask", func(t *testing.T) {
			t.Setenv("SSH_ASKPASS", "")
			p := newPool(t)
			e := refusal(t, p, resolve(t, p, client(t), "box"))
			has(t, e.Message, "keyboard-interactive")
			has(t, e.Hint, "SSH_ASKPASS")
		})
	}
}
