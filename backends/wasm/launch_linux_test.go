package wasm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine"
)

// TestEngineIsConfined has a program in the place of the engine write where guests
// may and where they may not.
func TestEngineIsConfined(t *testing.T) {
	dir, readOnly, outside := t.TempDir(), t.TempDir(), t.TempDir()
	impostor := filepath.Join(t.TempDir(), "engine")
	script := "#!/bin/sh\necho x > " + dir + "/inside; echo x > " + readOnly + "/read-only; echo x > " + outside + "/outside\nexit 1\n"
	if err := os.WriteFile(impostor, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	at := binding(t, pure(t, `,"preopens":["/work::`+dir+`","/data::`+readOnly+`:ro"]`))
	e, err := New(Options{Executable: impostor, CacheDir: filepath.Join(t.TempDir(), "cache")}).Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Detach(t.Context())
	if _, err := e.(*environment).RunModule(t.Context(), written(t, handmade(1))); err == nil {
		t.Fatal("a shell script is no engine")
	}
	if _, err := os.Stat(filepath.Join(dir, "inside")); err != nil {
		t.Error(err)
	}
	if abi, err := confine.ABI(); err != nil || abi < confine.RequiredABI {
		t.Logf("this kernel confines nothing: ABI %d (%v)", abi, err)
		return
	}
	for _, path := range []string{filepath.Join(readOnly, "read-only"), filepath.Join(outside, "outside")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s was written (%v)", path, err)
		}
	}
}

// TestCompileMemory: a module of 60 bytes, a function with four billion locals, takes all
// memory that its compiler may have, and nothing of the engine.
func TestCompileMemory(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	if _, err := e.RunModule(t.Context(), written(t, handmade(1))); err != nil {
		t.Fatal(err)
	}
	pid := e.engine.pid()
	_, err := e.RunModule(t.Context(), written(t, slices.Concat(
		[]byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x05\x03\x01\x00\x01"),
		[]byte("\x07\x13\x02\x06memory\x02\x00\x06_start\x00\x00"),
		[]byte{10, 10, 1, 8, 1, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x7f, opEnd},
	)))
	if got := failed(t, err); got.Kind != tool.ConfigInvalid || !strings.Contains(got.Message, "more memory than there is") || got.Hint == "" {
		t.Errorf("%s: %v", got.Kind, got)
	}
	if _, err := e.RunModule(t.Context(), written(t, handmade(1))); err != nil || e.engine.pid() != pid {
		t.Errorf("the next call: %v", err)
	}
}

// TestServiceKilledInputHeld is TestServiceKilled where somebody else holds the input
// of the engine: it ends with the thread that started it.
func TestServiceKilledInputHeld(t *testing.T) {
	cmd, pid := service(t)
	input, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/0", pid))
	if err != nil {
		t.Fatal(err)
	}
	ends, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, end := range ends {
		if to, err := os.Readlink(end); err == nil && to == input {
			f, err := os.OpenFile(end, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			held++
		}
	}
	if held == 0 {
		t.Fatal("the service's end of the engine's input was not found")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	gone(t, pid)
}
