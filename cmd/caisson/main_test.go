package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
)

// testVersion is what the program under test is stamped with.
const testVersion = "v1.2.3-test"

// programDir has the program as users get it: static, stripped and stamped.
var programDir string

// testProgram names, when set, the program, stamped with testVersion, beside which
// the older one lies: a user who runs tests that somebody else has built cannot
// always build.
const testProgram = "CAISSON_TEST_PROGRAM"

// olderProgram is the name of a program as it may have been before: of another
// version, and with a worker that announces what the protocol's contract has and
// nothing of ours. testdata/rig/older has the flags of the linker.
const olderProgram = "caisson-older"

func TestMain(m *testing.M) {
	if playPart(os.Args[1:]) {
		return
	}
	code, err := testMain(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func testMain(m *testing.M) (code int, err error) {
	if given := os.Getenv(testProgram); given != "" {
		programDir = filepath.Dir(given)
	} else {
		dir, err := os.MkdirTemp("", "caisson-program-")
		if err != nil {
			return 1, err
		}
		defer os.RemoveAll(dir)
		older, err := os.ReadFile(filepath.FromSlash("../../testdata/rig/older"))
		if err != nil {
			return 1, err
		}
		for name, flags := range map[string]string{"caisson": "-X main.version=" + testVersion, olderProgram: string(older)} {
			if err := buildProgram(filepath.Join(dir, name), strings.TrimSpace(flags)); err != nil {
				return 1, err
			}
		}
		programDir = dir
	}
	code = m.Run()
	if code == 0 {
		err = goleak.Find()
	}
	return code, err
}

// buildProgram builds the program with these flags of the linker.
func buildProgram(program, flags string) error {
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false",
		"-ldflags", "-s -w "+flags, "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("the program cannot be built: %w", err)
	}
	return nil
}

// TestScript runs testdata/script: what a person types and must see.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:   "testdata/script",
		Setup: func(e *testscript.Env) error { return setup(t, e) },
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"exec-code": execCode},
	})
}

// TestDockerScript runs testdata/docker, with $IMAGE an image that has a shell.
func TestDockerScript(t *testing.T) {
	image := dockertest.UseShell(t)
	testscript.Run(t, testscript.Params{
		Dir: "testdata/docker",
		Setup: func(e *testscript.Env) error {
			config := filepath.Join(e.WorkDir, ".config", "caisson", "config.json")
			text, err := os.ReadFile(config)
			if err != nil {
				return err
			}
			text = bytes.ReplaceAll(text, []byte("${IMAGE}"), []byte(image))
			return errors.Join(setup(t, e), os.WriteFile(config, text, 0o600))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exec-code": execCode},
	})
}

// setup gives a script a home of its own, and a runtime directory whose path is
// short enough for sockets.
func setup(t *testing.T, e *testscript.Env) error {
	runtimeDir, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		return err
	}
	e.Defer(func() {
		if err := os.RemoveAll(runtimeDir); err != nil {
			t.Error(err)
		}
	})
	e.Setenv("PATH", programDir+string(os.PathListSeparator)+os.Getenv("PATH"))
	e.Setenv("HOME", e.WorkDir)
	e.Setenv("XDG_RUNTIME_DIR", runtimeDir)
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "CAISSON_CONFIG"} {
		e.Setenv(name, "")
	}
	return nil
}

// execCode is the script command "exec-code CODE PROGRAM [ARGS...]": the program
// must end with this exit code.
func execCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exec-code code program [args...]")
	}
	code := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s cannot be run: %v", args[1], err)
	}
	if strconv.Itoa(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}
