package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// A pack is listed and run in containers of its own, like every command.
func TestPerCallPacks(t *testing.T) {
	image := dockertest.UseShell(t)
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, image)
	script := `#!/bin/sh
read -r r
case $r in
*'"action":"list"'*) echo '{"tools":[{"name":"glob","description":"Not the built-in one."}]}' ;;
*) cat /proc/sys/kernel/hostname > host; echo '{"ok":true,"result":"of the pack"}' ;;
esac
`
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(script))
	binding.Packs = []tool.Pack{{Name: "demo", Command: []string{"demo"}, SHA256: hex.EncodeToString(sum[:]), Source: source}}
	env := opened(t, b, binding)
	all, err := env.Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, d := range all {
		if d.Name == "glob" {
			found++
			if d.Group != tool.GroupPlugins {
				t.Errorf("it is described as %+v", d)
			}
		}
	}
	if r := call(t, env, "glob", map[string]any{}); found != 1 || r.Content[0].String() != "of the pack" {
		t.Errorf("%d in the list, and it says %+v", found, r)
	}
	bash(t, env, "true")
	if got, _ := bash(t, env, `test -s host && test "$(cat host)" != "$(cat /proc/sys/kernel/hostname)" && echo elsewhere`); got != "elsewhere\n" {
		t.Errorf("%q", got)
	}
	if got := callContainers(t, binding.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}

	broken := perCallBinding(t, b, image)
	broken.Packs = []tool.Pack{{Name: "missing", Command: []string{"no-such-program"}}}
	if env, err := b.Open(t.Context(), broken, nil); err == nil {
		t.Error(errors.Join(errors.New("it opened without its pack"), env.Shutdown(t.Context())))
	} else if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), "missing") {
		t.Error(err)
	}
	if got := left(t, broken.Store); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

// A session that is opened again and cannot have its packs keeps what it has.
func TestPerCallPacksLost(t *testing.T) {
	b := newBackend(t, far(t))
	binding := perCallBinding(t, b, dockertest.UseShell(t))
	env := opened(t, b, binding)
	bash(t, env, "echo kept > kept")
	if err := env.Detach(t.Context()); err != nil {
		t.Fatal(err)
	}
	binding.Provisioned = true
	broken := binding
	broken.Packs = []tool.Pack{{Name: "missing", Command: []string{"no-such-program"}}}
	running := func() string { return dockertest.Docker(t, "top", binding.Environment, "-o", "pid,args") }
	before := running()
	if _, err := b.Open(t.Context(), broken, nil); tool.KindOf(err) != tool.Unsupported {
		t.Fatal(err)
	}
	if now := running(); now != before {
		t.Errorf("in the container ran\n%s\nand run\n%s", before, now)
	}
}
