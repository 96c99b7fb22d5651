package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// typeScript is this adapter's twin in the TypeScript kit, as it is built.
const typeScript = "../../../../editor-extension/packages/adapter/examples/dist/audit/main.js"

// TestTypeScript runs on the adapter in TypeScript what the one here is tested by,
// the suite of all backends among it: the two kits are the same to the host.
func TestTypeScript(t *testing.T) {
	node, script := built(t)
	translated := func(t *testing.T, mode, ceiling tool.Mode) profile.Profile {
		p := newProfile(t, mode, ceiling)
		// The first two words are this program as the adapter; the flags are the same.
		p.Command = append([]string{node, script, "--log"}, p.Command[3:]...)
		return p
	}
	t.Run("Log", func(t *testing.T) { testLog(t, translated(t, tool.Standard, tool.Standard)) })
	t.Run("NothingWithoutTheLog", func(t *testing.T) {
		testNothingWithoutTheLog(t, translated(t, tool.Standard, tool.Standard))
	})
	t.Run("PeerDies", func(t *testing.T) { testPeerDies(t, translated(t, tool.Unconfined, tool.Unconfined)) })
	t.Run("Backend", func(t *testing.T) {
		h := harness()
		h.Profile = translated
		backendtest.Run(t, h)
	})
}

// built is Node and the adapter in TypeScript. Where that was not built, which never
// happens in CI, the test ends.
func built(t *testing.T) (node, script string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err == nil {
		_, err = os.Stat(typeScript)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("the packages in editor-extension are not built: %v", err)
	}
	if script, err = filepath.Abs(typeScript); err != nil {
		t.Fatal(err)
	}
	return node, script
}
