package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// What a helper "polite" is beside that.
const (
	headlessVariable = "HEADLESS" // its first thread has ended
	secretVariable   = "SECRET"   // nobody may look into it, its own user neither
)

// The first thread is told from others only here.
func init() {
	if os.Getenv(headlessVariable) != "" {
		runtime.LockOSThread()
	}
}

// helpPolite is a process that has started another one, and takes a moment to end when it
// is told to.
func helpPolite() {
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	c := exec.Command("sleep", "300")
	must(c.Start())
	if os.Getenv(secretVariable) != "" {
		must(unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
	}
	go func() {
		fmt.Println("ready", c.Process.Pid)
		<-told
		<-time.After(200 * time.Millisecond)
		os.Exit(7)
	}()
	if os.Getenv(headlessVariable) != "" {
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0) // of this thread, and does not return
	}
	select {}
}

// polite starts the helper, which is what the variables say too, and waits until it is that.
func polite(t *testing.T, m *Manager, variables ...string) tool.Process {
	t.Helper()
	env := map[string]string{helperVariable: "polite"}
	for _, name := range variables {
		env[name] = "1"
	}
	p := startRequest(t, m, tool.StartRequest{Argv: []string{"/proc/self/exe"}, Environment: env})
	see(t, m, p.ID, "ready")
	return p
}

// politely stops the process, which has the time that it takes to end.
func politely(t *testing.T, m *Manager, id string) {
	t.Helper()
	m.termGrace = patience
	p, err := m.Stop(t.Context(), id)
	if err != nil || p.ExitCode != 7 || p.Signal != "" {
		t.Errorf("%+v, %v", p, err)
	}
}

// A process whose first thread has ended is not gone.
func TestStopHeadless(t *testing.T) {
	m, _ := newTest(t)
	p := polite(t, m, headlessVariable)
	awaitState(t, p.PID, 'Z')
	politely(t, m, p.ID)
}

// insideHidden says how far a run of TestAsRootHidden is inside.
const insideHidden = "CAISSON_TEST_HIDDEN"

// Where /proc hides the processes of others commands end as elsewhere.
func TestAsRootHidden(t *testing.T) {
	switch inside := os.Getenv(insideHidden); inside {
	case "":
		for _, option := range []string{"hidepid=1", "hidepid=2"} {
			again(t, option, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS})
		}
	case "hidepid=1", "hidepid=2":
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("proc", "/proc", "proc", 0, inside); err != nil {
			t.Fatal(err)
		}
		// root sees everything.
		again(t, "user", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	default:
		if _, err := os.ReadFile("/proc/1/stat"); err == nil {
			t.Error("the first process is not hidden")
		}
		t.Run("stop", testHiddenStop)
		t.Run("alone", testHiddenAlone)
		t.Run("leftovers", testHiddenLeftovers)
		t.Run("foreign", testHiddenForeign)
	}
}

// again runs the test in a process of its own.
func again(t *testing.T, inside string, attributes *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAsRootHidden$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), insideHidden+"="+inside, "TMPDIR=/tmp")
	cmd.SysProcAttr = attributes
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestAsRootHidden") {
		t.Errorf("inside, as %s: %v\n%s", inside, err, out)
	}
}

// Close is the end of each test, and must not fail.
func testHiddenStop(t *testing.T) {
	m, _ := newTest(t)
	politely(t, m, polite(t, m).ID)
	politely(t, m, polite(t, m, secretVariable).ID) // which is hidden too
	start(t, m, "sleep 300")
}

func testHiddenAlone(t *testing.T) {
	m, _ := newTest(t)
	r, err := m.Run(t.Context(), Command{Command: left + "exit 3", Alone: true})
	if err != nil || r.ExitCode != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	gone(t, m.o.Root)
}

func testHiddenLeftovers(t *testing.T) {
	c := helper(t, "worker")
	id, _, instance, err := killedWorker(c)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := Settle(t.Context(), variable(c, "STATE"), "s1")
	if err != nil || len(lost) != 1 || lost[0].ID != id {
		t.Errorf("settled %+v, %v", lost, err)
	}
	if left := carriersOf(&Manager{instance: instance}); len(left) != 0 {
		t.Errorf("left: %+v", left)
	}
}

// A session whose first process is hidden is not without one.
func testHiddenForeign(t *testing.T) {
	dir := t.TempDir()
	leader := helper(t, "polite")
	leader.Env = append(leader.Env, secretVariable+"=1")
	leader.Dir, leader.SysProcAttr = dir, &syscall.SysProcAttr{Setsid: true}
	out, err := leader.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := leader.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-leader.Process.Pid, syscall.SIGKILL)
		_ = leader.Wait() // it was killed
	}()
	var ready string
	var member int
	if _, err := fmt.Fscan(out, &ready, &member); err != nil {
		t.Fatal(err)
	}
	rec := record{
		Process: tool.Process{ID: newID(), PID: leader.Process.Pid, PGID: leader.Process.Pid, CWD: dir,
			Status: tool.ProcessRunning, SandboxMode: tool.Unconfined},
		Identity: here(),
	}
	rec.Identity.Start = 1
	state := t.TempDir()
	leave(t, state, rec)
	if _, err := Settle(t.Context(), state, "s1"); err != nil {
		t.Error(err)
	}
	if members := inSession(t, leader.Process.Pid); len(members) != 1 || members[0].pid != member {
		t.Errorf("its members are %+v", members)
	}
}

// helpBlind stops a process while there is no descriptor to look with.
func helpBlind() {
	m := helperManager(false)
	m.termGrace = patience
	p, err := m.Start(context.Background(), tool.StartRequest{
		Command: "trap 'sleep .2; > bye; exit 7' TERM; > ready; while :; do sleep .02; done",
	})
	must(err)
	await := func(name string) {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for deadline := time.Now().Add(patience); ; <-tick.C {
			if _, err := os.Stat(filepath.Join(m.o.Root, name)); err == nil {
				return
			}
			if time.Now().After(deadline) {
				must(fmt.Errorf("there is no %s", name))
			}
		}
	}
	await("ready")
	var before unix.Rlimit
	must(unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	// poll asks for no more of them than the limit allows, though they are open.
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}))
	if _, err := scan(); err == nil {
		must(fmt.Errorf("it is not blind"))
	}
	stopped := make(chan error, 1)
	go func() {
		_, err := m.Stop(context.Background(), p.ID)
		stopped <- err
	}()
	await("bye")
	must(unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
	must(<-stopped)
	if p, err = m.Get(context.Background(), p.ID); err != nil || p.ExitCode != 7 {
		must(fmt.Errorf("%+v, %w", p, err))
	}
	must(m.Close(context.Background()))
	fmt.Println("fine")
}

// A process is given its time to end also while nobody can be seen.
func TestStopBlind(t *testing.T) {
	out, err := helper(t, "blind").Output()
	if err != nil || string(out) != "fine\n" {
		t.Errorf("%s %v", out, err)
	}
}
