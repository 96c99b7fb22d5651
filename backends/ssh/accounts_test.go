//go:build linux

package ssh

import (
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// account is a profile for an account of another user.
func account(t *testing.T, a *sshtest.Accounts, kind, workspace string) profile.Profile {
	t.Helper()
	client := sshtest.NewClient(t, a.KnownHosts(), sshtest.HostBlock("box", a.As(t, kind), a.Key))
	return profile.Profile{
		Name: "test", Backend: profile.SSH, Host: "box", SSHConfig: client.ConfigFile, Workspace: workspace,
		Lifetime: time.Minute, ShutdownTimeout: 7 * time.Second, Timeout: time.Minute,
		PermissionMode: tool.Standard, MaxPermissionMode: tool.Standard,
	}
}

func bindingOf(t *testing.T, p profile.Profile) backends.Binding {
	t.Helper()
	id := random()
	return backends.Binding{
		Session: "s-" + id[:8], Environment: "caisson-" + id, Store: "store-" + id,
		StateDir: t.TempDir(), RuntimeDir: privateDir(t), Profile: p,
		Secrets: backends.Secrets{Token: random() + random()},
	}
}

// Accounts of other users, in whose homes all kinds of things do not work.
func TestAccounts(t *testing.T) {
	a := sshtest.FindAccounts(t)
	for _, kind := range []string{"plain", "sh", "noisy", "readonly", "noexec", "full"} {
		t.Run(kind, func(t *testing.T) {
			b := newBackend(t)
			parent := path.Join("/var/tmp", "caisson-test-"+kind+"-"+random())
			p := account(t, a, kind, parent)
			t.Cleanup(func() {
				// Only the account itself can remove it.
				conn, m, _, err := b.reach(testContext(t), p, nil)
				if err != nil {
					t.Error(err)
					return
				}
				defer conn.Close()
				if result, err := m.script(testContext(t), answerTimeout, nil, `printf "%s\n" "$1"; rm -rf "$2"`, parent); err != nil || result.Code != 0 {
					t.Errorf("%+v, %v", result, err)
				}
			})
			if health := b.Check(t.Context(), p); !health.OK {
				t.Errorf("%+v", health)
			}
			binding := bindingOf(t, p)
			env := open(t, b, &binding)
			if got := bash(t, env, `id -un; test -O . && stat -c %a ..`); got != a.As(t, kind).User+"\n700\n" {
				t.Errorf("it is %q", got)
			}
		})
	}
	t.Run("a noexec home is sent nothing", func(t *testing.T) {
		b := newBackend(t)
		p := account(t, a, "noexec", path.Join("/var/tmp", "caisson-test-noexec-"+random()))
		sent := 0
		conn, m, key, err := b.reach(t.Context(), p, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		placed, err := b.worker(t.Context(), m, key, p, func(step string) {
			if strings.HasPrefix(step, "putting the worker") {
				sent++
			}
		})
		if err != nil || sent != 1 || !strings.HasPrefix(placed.program, p.Workspace) {
			t.Errorf("the worker was sent %d times, at last to %s: %v", sent, placed.program, err)
		}
		if result, err := m.script(t.Context(), answerTimeout, nil, `printf "%s\n" "$1"; rm -rf "$2"; find "${XDG_CACHE_HOME:-$HOME/.cache}/caisson/worker" -type f -o -name "$3"`, p.Workspace, path.Base(path.Dir(placed.program))); err != nil || len(result.Stdout) > 0 {
			t.Errorf("what is left: %q, %v", result.Stdout, err)
		}
	})
	t.Run("full workspace", func(t *testing.T) {
		b, binding := newBackend(t), bindingOf(t, account(t, a, "full", "/home/"+a.As(t, "full").User+"/environments"))
		env, err := b.Open(t.Context(), binding, nil)
		if err == nil {
			// What little it needs has its place; the rest does not.
			_, err = env.(backends.FileSystem).WriteFile(t.Context(), "f", make([]byte, 1<<20))
			if err == nil || !strings.Contains(err.Error(), "no space is left") {
				t.Errorf("a write to a full disk: %v", err)
			}
			if err := errors.Join(env.Shutdown(t.Context()), env.Detach(t.Context()), b.Remove(t.Context(), binding)); err != nil {
				t.Error(err)
			}
			return
		}
		if !strings.Contains(err.Error()+tool.HintOf(err), "full") {
			t.Errorf("%v (%s)", err, tool.HintOf(err))
		}
	})
	for kind, want := range map[string]string{"nologin": "not available", "restricted": "restricted"} {
		t.Run(kind, func(t *testing.T) {
			_, err := newBackend(t).Open(t.Context(), bindingOf(t, account(t, a, kind, "/var/tmp")), nil)
			if tool.KindOf(err) != tool.BackendUnavailable || !strings.Contains(err.Error(), want) || !strings.Contains(tool.HintOf(err), "login shell") {
				t.Errorf("%v (%s)", err, tool.HintOf(err))
			}
		})
	}
}
