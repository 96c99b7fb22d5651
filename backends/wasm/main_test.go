package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// patience is how long tests wait for what should come at once.
const patience = 30 * time.Second

// built is where the guests of this run are; TestMain removes it.
var built string

// The test binary is a service that is to be killed too.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "service" {
		if err := playService(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if built, err = os.MkdirTemp("", "caisson-guests-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(built)
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// build compiles a program of testdata for a system.
func build(name, as string, system ...string) func() (string, error) {
	return sync.OnceValues(func() (string, error) {
		out := filepath.Join(built, as)
		cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", out, "./testdata/"+name)
		cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false"), system...)
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", name, err, text)
		}
		return out, nil
	})
}

var (
	buildGuest = build("guest", "guest.wasm", "GOOS=wasip1", "GOARCH=wasm")
	// The whole program, where there is one already, is an engine too: whoever runs
	// these tests may have no sources of other modules.
	buildEngine = sync.OnceValues(func() (string, error) {
		program := os.Getenv(testProgram)
		if program == "" {
			return build("engine", "engine")()
		}
		data, err := os.ReadFile(program)
		if err != nil {
			return "", err
		}
		out := filepath.Join(built, "engine") // by which its processes are known
		return out, os.WriteFile(out, data, 0o755)
	})
)

// testProgram is the variable that names a program that is built already.
const testProgram = "CAISSON_TEST_PROGRAM"

func guest(t testing.TB) string {
	t.Helper()
	path, err := buildGuest()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func sumOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// options are those of a backend whose cache all tests share, so that the guest is
// compiled once.
func options(t testing.TB) Options {
	t.Helper()
	path, err := buildEngine()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Executable: path, CacheDir: filepath.Join(built, "cache")}
}

// pure is a wasm profile with members changed.
func pure(t testing.TB, members string) profile.Profile {
	t.Helper()
	p, err := profile.Parse("pure", []byte(`{"backend":"wasm"`+members+`}`), profile.Defaults{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// binding is a new session on the profile.
func binding(t testing.TB, p profile.Profile) backends.Binding {
	t.Helper()
	return backends.Binding{
		Session: "s1", Environment: "caisson-" + strings.Repeat("0", 32), Profile: p, StateDir: t.TempDir(),
		Secrets: backends.Secrets{Environment: map[string]string{"GREETING": "hello"}},
	}
}

// open opens an environment that the test's end lets go of.
func open(t testing.TB, at backends.Binding) *environment {
	t.Helper()
	e, err := New(options(t)).Open(t.Context(), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Detach(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return e.(*environment)
}

// preopen is a profile's members with one directory.
func preopen(host, more string) string {
	return fmt.Sprintf(`,"preopens":["/work::%s%s"]`, host, more)
}

// request asks for one run of the Go guest.
func request(t testing.TB, args ...string) backends.ModuleRequest {
	t.Helper()
	path := guest(t)
	return backends.ModuleRequest{ID: "call", Path: path, SHA256: sumOf(t, path), Args: args}
}

// failed is the error's kind and reason.
func failed(t testing.TB, err error) *tool.Error {
	t.Helper()
	var e *tool.Error
	if !errors.As(err, &e) {
		t.Fatalf("the error is %v (%T), not one with a kind", err, err)
	}
	return e
}

// playService is a service that runs an endless guest until it is killed. It says
// the process id of its engine.
func playService(file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var r struct {
		Binding backends.Binding
		Request backends.ModuleRequest
		Job     backends.JobRequest // instead, when it has a program
		Engine  string
		Cache   string
		Running string
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	opened, err := New(Options{Executable: r.Engine, CacheDir: r.Cache}).Open(context.Background(), r.Binding, nil)
	if err != nil {
		return err
	}
	e := opened.(*environment)
	failed := make(chan error, 1)
	go func() {
		var err error
		if len(r.Job.Argv) > 0 {
			_, err = e.RunJob(context.Background(), r.Job)
		} else {
			_, err = e.RunModule(context.Background(), r.Request)
		}
		failed <- err
	}()
	for {
		if _, err := os.Stat(r.Running); err == nil {
			break
		}
		select {
		case err := <-failed:
			return fmt.Errorf("the guest ended: %w", err)
		case <-time.After(2 * time.Millisecond):
		}
	}
	fmt.Println(e.engine.pid())
	select {}
}

// pid is the process id of the engine, 0 for none.
func (p *engineProcess) pid() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return p.current.program.Pid()
}
