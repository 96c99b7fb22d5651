package ssh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine/confinetest"
)

// programs is the directory of the programs that tests build.
var programs = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "caisson-ssh-test-") })

// withoutLandlock makes this test program one that starts another where there is no
// Landlock: what follows are its arguments.
const withoutLandlock = "without-landlock"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == withoutLandlock {
		err := confinetest.WithoutLandlock()
		if err == nil {
			err = syscall.Exec(os.Args[2], os.Args[2:], os.Environ())
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
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

var buildFar = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(testProgram); path != "" {
		return path, nil
	}
	dir, err := programs()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "caisson")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./testdata/far")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the far end: %w: %s", err, said)
	}
	return out, nil
})

// far is the real worker's program.
func far(t testing.TB) string {
	t.Helper()
	path, err := buildFar()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newBackend is a backend as a service that was just started has it. It is closed
// with t.
func newBackend(t testing.TB) *Backend {
	t.Helper()
	b := New(Options{Executable: far(t), Version: "ssh-test", Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))})
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// box is a machine to work on.
type box struct {
	server *sshtest.Server
	client *sshtest.Client
	proxy  *sshtest.Proxy // what the client goes through
	block  string         // that of the client's configuration
	home   string         // the account's home there
	parent string         // where environments are made
}

// newBox starts a machine that is reached as "box".
func newBox(t testing.TB, o sshtest.Options) *box {
	t.Helper()
	key := sshtest.NewKey(t, "ed25519", "")
	b := &box{home: privateDir(t), parent: filepath.Join(privateDir(t), "environments")}
	o.Authorized = []sshtest.Key{key}
	o.Lines = append(o.Lines, "SetEnv HOME="+b.home)
	b.server = sshtest.Start(t, o)
	b.proxy = sshtest.StartProxy(t, b.server.Addr)
	through := &sshtest.Server{Host: b.proxy.Host, Port: b.proxy.Port, User: b.server.User}
	b.block = sshtest.HostBlock("box", through, key)
	b.client = sshtest.NewClient(t, b.proxy.KnownHosts(b.server), b.block)
	return b
}

// profile is a profile for the machine.
func (b *box) profile() profile.Profile {
	return profile.Profile{
		Name: "test", Backend: profile.SSH, Host: "box", SSHConfig: b.client.ConfigFile, Workspace: b.parent,
		Lifetime: 2 * time.Minute, ShutdownTimeout: 7 * time.Second, Timeout: time.Minute,
		PermissionMode: tool.Standard, MaxPermissionMode: tool.Standard,
	}
}

// newBinding is a binding of its own to the machine. What it leads to is removed
// with the test.
func (b *box) newBinding(t testing.TB) backends.Binding {
	t.Helper()
	id := random()
	binding := backends.Binding{
		Session: "s-" + id[:8], Environment: "caisson-" + id, Store: "store-" + id,
		StateDir: t.TempDir(), RuntimeDir: privateDir(t), Profile: b.profile(),
		Secrets: backends.Secrets{Token: random() + random(), Environment: map[string]string{"HIDDEN": "s3cret-value"}},
	}
	t.Cleanup(func() {
		if t.Failed() {
			return
		}
		if found := leftovers(t, binding); len(found) > 0 {
			t.Errorf("left of the environment: %q", found)
		}
	})
	return binding
}

// open opens the binding, which is provisioned from then on, and removes it at
// the test's end.
func open(t testing.TB, b *Backend, binding *backends.Binding) backends.Environment {
	t.Helper()
	env, err := b.Open(testContext(t), *binding, nil)
	if err != nil {
		t.Fatalf("%v (%s)", err, tool.HintOf(err))
	}
	binding.Provisioned = true
	t.Cleanup(func() {
		ctx := testContext(t)
		if err := errors.Join(env.Shutdown(ctx), env.Detach(ctx), b.Remove(ctx, *binding)); err != nil {
			t.Error(err)
		}
	})
	return env
}

// call calls a tool.
func call(t testing.TB, env backends.Environment, name string, arguments map[string]any) (tool.Result, error) {
	t.Helper()
	raw, err := json.Marshal(arguments)
	if err != nil {
		t.Fatal(err)
	}
	return env.Call(testContext(t), tool.Request{ID: random(), Name: name, Arguments: raw})
}

// bash runs a command line, which must succeed, and returns what it printed.
func bash(t testing.TB, env backends.Environment, line string) string {
	t.Helper()
	result, err := call(t, env, "bash", map[string]any{"command": line})
	if err != nil {
		t.Fatalf("%s: %v (%s)", line, err, tool.HintOf(err))
	}
	var ran struct {
		ExitCode int    `json:"exit_code"`
		Out      string `json:"stdout"`
		Err      string `json:"stderr"`
	}
	if err := json.Unmarshal(result.StructuredContent, &ran); err != nil {
		t.Fatal(err)
	}
	if ran.ExitCode != 0 {
		t.Fatalf("%s: exit code %d: %s%s", line, ran.ExitCode, ran.Out, ran.Err)
	}
	return ran.Out
}

// leftovers are the directory of the binding's environment, and the processes
// that have it in their arguments, as a worker has, or in their environment, as
// every command has.
func leftovers(t testing.TB, b backends.Binding) []string {
	t.Helper()
	var found []string
	entries, err := os.ReadDir(b.Profile.Workspace)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() == b.Environment || strings.HasPrefix(e.Name(), ".caisson-new-") {
			found = append(found, filepath.Join(b.Profile.Workspace, e.Name()))
		}
	}
	// A worker gives its lock back, which is what its removal waits for, moments
	// before it exits.
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	left := processes(t, b)
	for patience := time.Now().Add(exitPatience); len(left) > 0 && time.Now().Before(patience); left = processes(t, b) {
		<-tick.C
	}
	for pid, said := range left {
		found = append(found, fmt.Sprintf("process %s: %.200q", pid, said))
	}
	return found
}

// exitPatience is how long a process may take to exit that has nothing to do any
// more, on a busy machine.
const exitPatience = 30 * time.Second

// processes are what runs of the binding's environment on this machine, by pid.
func processes(t testing.TB, b backends.Binding) map[string]string {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, proc := range all {
		for _, file := range []string{"cmdline", "environ"} {
			// A process that ended meanwhile, or is another user's, is none of ours.
			data, err := os.ReadFile(filepath.Join(proc, file))
			if err == nil && strings.Contains(string(data), b.Environment) {
				found[filepath.Base(proc)] = string(data)
			}
		}
	}
	return found
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

// testContext outlives the test, for what is done by its Cleanup too, and ends
// before the test binary does.
func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 90*time.Second)
	t.Cleanup(cancel)
	return ctx
}
