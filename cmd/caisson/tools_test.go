package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// exampleTools compiles the example of docs/tools.md, and returns its directory.
func exampleTools(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(dir, "wordcount.wasm"), "../../docs/examples/wordcount")
	build.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=-buildvcs=false")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the example cannot be built: %v\n%s", err, text)
	}
	return dir
}

// TestToolsScript runs testdata/tools, with $TOOLS the directory of the module, and
// $EXAMPLES that of its source and of the example of a pack.
func TestToolsScript(t *testing.T) {
	tools := exampleTools(t)
	examples, err := filepath.Abs("../../docs/examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/tools",
		Setup: func(e *testscript.Env) error {
			e.Setenv("TOOLS", tools)
			e.Setenv("EXAMPLES", examples)
			return setup(t, e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exec-code": execCode},
	})
}
