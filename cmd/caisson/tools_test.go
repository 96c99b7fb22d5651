package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// A module that means harm, or is none, is not registered, and the reason is told.
func TestRegisterHostile(t *testing.T) {
	head := "\x00asm\x01\x00\x00\x00"
	loop := head + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x05\x03\x01\x00\x01" +
		"\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00" + "\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b"
	for name, test := range map[string]struct{ module, want string }{
		"endless":   {loop, "fuel, 1000000000 instructions, was spent"},
		"garbage":   {head + "garbage", "module"},
		"no start":  {head, "m.wasm exports no function _start"},
		"truncated": {loop[:len(loop)-4], "module"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			module := filepath.Join(dir, "m.wasm")
			if err := os.WriteFile(module, []byte(test.module), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), filepath.Join(programDir, "caisson"), "tools", "register", module)
			cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_RUNTIME_DIR="+dir, "XDG_STATE_HOME=", "XDG_DATA_HOME=", "XDG_CONFIG_HOME=", "CAISSON_CONFIG=")
			out, err := cmd.CombinedOutput()
			if err == nil || !strings.Contains(string(out), test.want) {
				t.Errorf("%v: %s", err, out)
			}
			names, err := os.ReadDir(filepath.Join(dir, ".local", "share", "caisson", "plugins", "names"))
			if err != nil || len(names) != 0 {
				t.Errorf("registered %v, %v", names, err)
			}
		})
	}
}
