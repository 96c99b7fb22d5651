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

// TestTypeScript runs the suite of all backends on the adapter in TypeScript: the
// two kits are the same to the host.
func TestTypeScript(t *testing.T) {
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
	script, err := filepath.Abs(typeScript)
	if err != nil {
		t.Fatal(err)
	}
	h := harness()
	inGo := h.Profile
	h.Profile = func(t *testing.T, mode, ceiling tool.Mode) profile.Profile {
		p := inGo(t, mode, ceiling)
		// The first two words are this program as the adapter; the flags are the same.
		p.Command = append([]string{node, script}, p.Command[2:]...)
		p.Command[2] = "--log"
		return p
	}
	backendtest.Run(t, h)
}
