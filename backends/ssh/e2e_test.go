//go:build linux

package ssh

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// ownMachine names, when set, a profile as JSON for a machine of the user's own,
// on which the suite of all backends is run too. It needs bash, git and Linux 6.2
// there, and leaves nothing but the worker.
const ownMachine = "CAISSON_E2E_SSH"

// TestOwnMachine runs the suite on it. What is left of an environment there is
// asked of the machine itself.
func TestOwnMachine(t *testing.T) {
	raw := os.Getenv(ownMachine)
	if raw == "" {
		t.Logf("%s is not set: the suite runs on this machine only", ownMachine)
		return
	}
	p, err := profile.Parse("own", json.RawMessage(raw), profile.Defaults{})
	if err != nil {
		t.Fatalf("%s: %v", ownMachine, err)
	}
	looks := newBackend(t)
	backendtest.Run(t, backendtest.Harness{
		Backend: func(*testing.T) backends.Backend { return newBackend(t) },
		Profile: func(_ *testing.T, mode, ceiling tool.Mode) profile.Profile {
			p := p
			p.PermissionMode, p.MaxPermissionMode = mode, ceiling
			return p
		},
		Outside:   func(*testing.T) string { return "/tmp" },
		Leftovers: func(t *testing.T, b backends.Binding) []string { return onMachine(t, looks, leftoversScript, b) },
		Vanish:    func(t *testing.T, b backends.Binding) { onMachine(t, looks, vanishScript, b) },
	})
}

// The scripts look for an environment's processes, and for its directory. The
// identity is given to them in two parts, for them not to find themselves.
const (
	eachProcess     = `for p in /proc/[0-9]*; do if { tr "\0" " " < $p/cmdline | grep -q "$3$4"; } 2>/dev/null; then `
	leftoversScript = `printf "%s\n" "$1"; if [ -e "$2/$3$4" ]; then echo "$2/$3$4"; fi; ` + eachProcess + `echo $p; fi; done`
	vanishScript    = `printf "%s\n" "$1"; ` + eachProcess + `kill -KILL ${p#/proc/}; fi; done; rm -rf "$2/$3$4"`
)

// onMachine runs one of the scripts and returns the lines that it prints.
func onMachine(t *testing.T, b *Backend, script string, binding backends.Binding) []string {
	t.Helper()
	conn, m, _, err := b.reach(testContext(t), binding.Profile, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	half := len(binding.Environment) / 2
	result, err := m.script(testContext(t), answerTimeout, nil, script, binding.Profile.Workspace, binding.Environment[:half], binding.Environment[half:])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(result.Stdout))
}

// What the suite would learn of a machine of the user's own is what is there.
func TestOwnMachineScripts(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	b, binding := newBackend(t), box.newBinding(t)
	if found := onMachine(t, b, leftoversScript, binding); len(found) > 0 {
		t.Errorf("before: %q", found)
	}
	env, err := b.Open(t.Context(), binding, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := onMachine(t, b, leftoversScript, binding); len(found) < 2 || found[0] != directory(binding) {
		t.Errorf("while it is there: %q", found)
	}
	onMachine(t, b, vanishScript, binding)
	until(t, "its end", func() bool { return len(onMachine(t, b, leftoversScript, binding)) == 0 })
}
