package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/command"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/supervise"
)

// The test binary is the adapter too, as "audit", and what is behind it: the worker,
// or an "interpreter".
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "audit" {
		os.Args = os.Args[1:]
		main()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "interpreter" {
		if err := interpreter(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if handled, code := supervise.Main(os.Args[1:]); handled {
		os.Exit(code)
	}
	// Under the race detector every adapter and worker would sleep for a second at
	// its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// audited is the adapter's command line, for the worker that argv starts.
func audited(t *testing.T, log string, argv ...string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{self, "audit", "-log", log, "--"}, argv...)
}

// newProfile is a profile whose adapter delegates to our worker on this machine.
func newProfile(t *testing.T, mode, ceiling tool.Mode) profile.Profile {
	t.Helper()
	dir := t.TempDir()
	// As it is built for users, where that is at hand: this test is about what stands
	// before it.
	program := os.Getenv("CAISSON_TEST_PROGRAM")
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	return profile.Profile{
		Name: "audited", Backend: profile.Command, Workspace: filepath.Join(dir, "workspace"),
		Command: audited(t, filepath.Join(dir, "audit.jsonl"), program, "worker",
			"--state="+filepath.Join(dir, "state"), "--permission-mode="+string(mode), "--max-permission-mode="+string(ceiling)),
		PermissionMode: mode, MaxPermissionMode: ceiling,
		Timeout: time.Minute, ShutdownTimeout: time.Minute, Lifetime: 10 * time.Minute,
	}
}

// TestBackend runs the suite of all backends on an adapter that delegates to our
// worker.
func TestBackend(t *testing.T) { backendtest.Run(t, harness()) }

// harness is for environments behind an audit adapter.
func harness() backendtest.Harness {
	return backendtest.Harness{
		Backend:   func(*testing.T) backends.Backend { return command.New(command.Options{}) },
		Profile:   newProfile,
		Outside:   func(t *testing.T) string { return t.TempDir() },
		Leftovers: leftovers,
		Vanish: func(t *testing.T, b backends.Binding) {
			if err := os.RemoveAll(b.Profile.Workspace); err != nil {
				t.Fatal(err)
			}
		},
		Lacks: backendtest.Lacks{
			Reattach: "an adapter lives as long as its connection",
			Shared:   "an adapter serves one session",
		},
	}
}

// leftovers are the processes that have the profile's directory in their
// arguments, as the adapter and its worker do, or in their environment, as every
// command does.
func leftovers(t *testing.T, b backends.Binding) []string {
	t.Helper()
	return processes(t, filepath.Dir(b.Profile.Workspace))
}

func processes(t *testing.T, mark string) (found []string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, proc := range procs {
		if filepath.Base(proc) == strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, file := range []string{"cmdline", "environ"} {
			// A process that ended meanwhile, or is another user's, is none of ours.
			data, err := os.ReadFile(filepath.Join(proc, file))
			if err == nil && bytes.Contains(data, []byte(mark)) {
				found = append(found, fmt.Sprintf("%s: %.100q", proc, strings.ReplaceAll(string(data), "\x00", " ")))
				break
			}
		}
	}
	return found
}
