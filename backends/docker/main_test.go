package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// programs is the directory of the programs that tests build.
var programs = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "caisson-docker-test-") })

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := programs(); err == nil {
			_ = os.RemoveAll(dir) // as good as it goes at the end of a test
		}
		os.Exit(code)
	}))
}

// testProgram names, when set, the whole program, built statically: a user who
// runs tests that somebody else has built cannot always build.
const testProgram = "CAISSON_TEST_PROGRAM"

// build builds a program of testdata, static as the release is, once.
func build(name string) (string, error) {
	dir, err := programs()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, name)
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", out, "./testdata/"+name)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w: %s", name, err, said)
	}
	return out, nil
}

var buildEcho = sync.OnceValues(func() (string, error) { return build("echo") })

// echo is the stand-in for the worker's program.
func echo(t testing.TB) string {
	t.Helper()
	path, err := buildEcho()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// testVersion marks what tests make.
const testVersion = "docker-test"

// newBackend is a backend whose worker is the program, on the daemon of this
// machine.
func newBackend(t testing.TB, program string) *Backend {
	t.Helper()
	b := New(Options{Executable: program, Version: testVersion})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// newBinding is a binding of its own to a profile for the image. Whatever it
// leads to is removed with the test, and the test fails when something is left.
func newBinding(t testing.TB, b *Backend, image string) backends.Binding {
	t.Helper()
	id := b.random()
	binding := backends.Binding{
		Session:     "s-" + id[:8],
		Environment: "caisson-" + id,
		Store:       "store-" + id,
		StateDir:    t.TempDir(),
		RuntimeDir:  privateDir(t),
		Profile: profile.Profile{
			Name: "test", Backend: profile.Docker, Image: image, Pull: pullNever,
			Workspace: "/workspace", ContainerPolicy: profile.PolicyPerSession,
			Network: "none", PidsLimit: 512, TmpfsNoexec: true, TmpfsSize: 64 << 20,
			Lifetime: 10 * time.Minute, ShutdownTimeout: 7 * time.Second, Timeout: time.Minute,
			PermissionMode: tool.Standard, MaxPermissionMode: tool.Standard,
		},
	}
	t.Cleanup(func() { removeAll(t, binding.Store) })
	return binding
}

// privateDir is a directory with a short path that only its user may enter.
func privateDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "c-") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// removeAll removes what is left of a store, worker volumes included.
func removeAll(t testing.TB, store string) {
	t.Helper()
	e := testEngine(t)
	ctx := testContext(t)
	for _, c := range must(e.containers(ctx, labelStore+"="+store))(t) {
		if err := removeAndWait(ctx, e, c.ID); err != nil {
			t.Error(err)
		}
	}
	volumes := must(e.unusedVolumes(ctx, labelStore+"="+store))(t)
	// A worker's volume belongs to the store that was the first to need it.
	volumes = append(volumes, must(e.unusedVolumes(ctx, labelVersion+"="+testVersion, labelKind+"="+kindWorker))(t)...)
	for _, v := range volumes {
		if err := e.removeVolume(ctx, v.Name); err != nil && !errors.Is(err, errNotFound) && !errors.Is(err, errConflict) {
			t.Error(err)
		}
	}
}

// testEngine is a connection of the test's own to this machine's daemon.
func testEngine(t testing.TB) *engine {
	t.Helper()
	e := must(newEngine(endpoint{Host: defaultHost(), From: "the test"}))(t)
	t.Cleanup(func() { e.close() })
	must(e.hello(testContext(t)))(t)
	return e
}

// left are the containers and volumes of a store, worker volumes aside.
func left(t testing.TB, store string) []string {
	t.Helper()
	e := testEngine(t)
	var names []string
	for _, c := range must(e.containers(testContext(t), labelStore+"="+store))(t) {
		names = append(names, "container "+c.Name)
	}
	for _, v := range must(e.unusedVolumes(testContext(t), labelStore+"="+store, labelKind+"="+kindEnvironment))(t) {
		names = append(names, "volume "+v.Name)
	}
	return names
}

// must fails the test on an error: must(f())(t).
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// testContext outlives the test, for what is done by its Cleanup too, and ends
// before the test binary does.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// bare loads the image of one file.
func bare(t testing.TB) string {
	t.Helper()
	return dockertest.Use(t, dockertest.Bare())
}
