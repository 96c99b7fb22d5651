//go:build linux

package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// helper is this test program as one of the helpers, with directories of the
// test's own in STATE and ROOT.
func helper(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), helperVariable+"="+name, "GORACE=atexit_sleep_ms=0", "STATE="+filepath.Join(t.TempDir(), "state"), "ROOT="+t.TempDir())
	return c
}

// variable is one of a helper's environment.
func variable(c *exec.Cmd, name string) string {
	for _, kv := range c.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// must ends a helper that goes wrong.
func must(err error) {
	if err != nil {
		fmt.Println("FAILED:", err)
		os.Exit(1)
	}
}

func helperManager(adopt bool) *Manager {
	m, err := NewManager(Options{
		StateDir: os.Getenv("STATE"), Session: "s1", Root: os.Getenv("ROOT"),
		Env:         []string{"PATH=" + defaultPath},
		DefaultMode: tool.Unconfined, Ceiling: tool.Unconfined, AdoptOrphans: adopt,
	})
	must(err)
	return m
}

// descendants are the children and their children of this program, with how
// many of them are zombies.
func descendants() (living []procInfo, zombies int) {
	all, err := scan()
	must(err)
	for _, p := range all {
		if p.parent == os.Getpid() && p.zombie {
			zombies++
		}
	}
	return family(all, func(p procInfo) bool { return p.parent == os.Getpid() }), zombies
}

// noZombies waits until no more than so many descendants live, and fails when one
// that has ended stays: it is gone after a moment, but on a busy machine.
func noZombies(stay int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ended := time.Now(); ; <-tick.C {
		living, zombies := descendants()
		if len(living)-zombies > stay {
			ended = time.Now()
			continue
		}
		if zombies == 0 {
			return
		}
		if time.Since(ended) > patience {
			must(fmt.Errorf("%d zombies stay", zombies))
		}
	}
}

func helpOrphans() {
	m := helperManager(true)
	ctx := context.Background()
	// Forty orphans that end at once, while commands come and go.
	for range 20 {
		_, err := m.Run(ctx, Command{Command: "(true &) ; (setsid true &)"})
		must(err)
	}
	noZombies(0)
	// One that ends long after its command, with no other beside it and with one.
	_, err := m.Run(ctx, Command{Command: "(setsid sleep .4 &)"})
	must(err)
	noZombies(0)
	_, err = m.Start(ctx, tool.StartRequest{Argv: []string{"sleep", "300"}})
	must(err)
	_, err = m.Run(ctx, Command{Command: "(setsid sleep .4 &)"})
	must(err)
	noZombies(1)
	// What left its session, its parents and its environment is found still.
	_, err = m.Run(ctx, Command{Command: "env -i setsid sh -c 'sleep 300 & sleep 300 & exit' ; (setsid sleep 300 &)"})
	must(err)
	if living, _ := descendants(); len(living) != 4 {
		must(fmt.Errorf("orphans are %v", living))
	}
	must(m.Close(ctx))
	living, zombies := descendants()
	if len(living)+zombies != 0 {
		must(fmt.Errorf("after close there are %v and %d zombies", living, zombies))
	}
	fmt.Println("fine")
}

func TestOrphans(t *testing.T) {
	out, err := helper(t, "orphans").Output()
	if err != nil || string(out) != "fine\n" {
		t.Errorf("%s %v", out, err)
	}
}

// helpWorker is a worker that starts a process, says which, and hangs.
func helpWorker() {
	m := helperManager(false)
	p, err := m.Start(context.Background(), tool.StartRequest{OperationID: "op", Command: "echo before; sleep 300 & setsid sleep 300 & sleep 300"})
	must(err)
	m2, err := m.Start(context.Background(), tool.StartRequest{Command: "echo over"})
	must(err)
	_, err = m.Wait(context.Background(), m2.ID)
	must(err)
	for {
		r, err := m.Read(context.Background(), p.ID, tool.ReadOptions{})
		must(err)
		if len(carriersOf(m)) == 4 && len(r.Output) > 0 {
			break
		}
	}
	fmt.Println(p.ID, p.PID, m.instance)
	select {}
}

func carriersOf(m *Manager) (left []procInfo) {
	all, err := scan()
	must(err)
	for _, p := range all {
		if !p.zombie && marked(p.pid, m.instance+"/") {
			left = append(left, p)
		}
	}
	return left
}

// killedWorker runs a helper that is a worker, kills it, and tells what it ran.
func killedWorker(c *exec.Cmd) (id string, pid int, instance string, err error) {
	out, err := c.StdoutPipe()
	if err != nil {
		return "", 0, "", err
	}
	if err := c.Start(); err != nil {
		return "", 0, "", err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	_, scanned := fmt.Sscan(line, &id, &pid, &instance)
	err = errors.Join(err, scanned, c.Process.Kill())
	_ = c.Wait() // it was killed, and says so
	if err != nil {
		return "", 0, "", fmt.Errorf("%s: %w", line, err)
	}
	return id, pid, instance, nil
}

func TestWorkerKilled(t *testing.T) {
	for _, by := range []string{"settle", "manager"} {
		t.Run(by, func(t *testing.T) {
			c := helper(t, "worker")
			id, pid, instance, err := killedWorker(c)
			if err != nil {
				t.Fatal(err)
			}
			awaitDeath(t, pid) // with its worker, before anybody settles anything
			state := variable(c, "STATE")
			if by == "settle" {
				lost, err := Settle(t.Context(), state, "s1")
				if err != nil || len(lost) != 1 || lost[0].ID != id {
					t.Errorf("settled %+v, %v", lost, err)
				}
				if lost, err = Settle(t.Context(), state, "s1"); err != nil || len(lost) != 0 {
					t.Errorf("settled again %+v, %v", lost, err)
				}
			}
			m, r := newTest(t, func(o *Options) { o.StateDir, o.Root = state, variable(c, "ROOT") })
			procs, err := scan()
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range procs {
				if !p.zombie && marked(p.pid, instance+"/") {
					t.Errorf("%+v is left", p)
				}
			}
			p, err := m.Get(t.Context(), id)
			if err != nil || p.Status != tool.ProcessFailed || p.TerminalCause != tool.CauseLost || p.ExitCode != -1 || !p.OutputClosed || p.StoppedAt.IsZero() || p.TotalBytes != 7 {
				t.Errorf("%+v %v", p, err)
			}
			if text := all(t, m, id); text != "before\n" {
				t.Errorf("output is %q", text)
			}
			again := startRequest(t, m, tool.StartRequest{OperationID: "op", Command: "echo before; sleep 300 & setsid sleep 300 & sleep 300"})
			if again.ID != id {
				t.Errorf("the same operation gave %+v", again)
			}
			list, err := m.List(t.Context())
			if err != nil || len(list) != 2 || list[1].Status != tool.ProcessStopped || list[1].ExitCode != 0 {
				t.Errorf("%+v %v", list, err)
			}
			if len(r.events) != 0 {
				t.Errorf("events: %+v", r.events)
			}
		})
	}
	if lost, err := Settle(t.Context(), t.TempDir(), "never"); err != nil || len(lost) != 0 {
		t.Errorf("nothing to settle: %v %v", lost, err)
	}
}

// awaitDeath returns when pid has ended.
func awaitDeath(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if p, err := readProc(strconv.Itoa(pid)); err != nil || p.zombie {
			return
		}
		if time.Now().After(deadline) {
			t.Errorf("%d outlives its worker", pid)
			return
		}
	}
}

// innocent starts a process that nobody may signal.
func innocent() *exec.Cmd {
	c := exec.Command("sleep", "300")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return c
}

// A record whose pid is somebody else's now is lost, and nobody is signalled.
func TestRecycledPID(t *testing.T) {
	c := innocent()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(c.Process.Signal(syscall.Signal(0)), c.Process.Kill()); err != nil {
			t.Errorf("the innocent: %v", err)
		}
		_ = c.Wait() // it was killed just now
	}()
	is := whoIs(c.Process.Pid)
	for name, id := range map[string]identity{
		"time":      {Start: is.Start - 1, Boot: is.Boot, Namespace: is.Namespace},
		"boot":      {Start: is.Start, Boot: "another", Namespace: is.Namespace},
		"namespace": {Start: is.Start, Boot: is.Boot, Namespace: "pid:[1]"},
		"unknown":   {Boot: is.Boot, Namespace: is.Namespace},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			rec := record{Process: tool.Process{ID: newID(), PID: c.Process.Pid, PGID: c.Process.Pid, Status: tool.ProcessRunning}, Identity: id}
			leave(t, state, rec)
			m, _ := newTest(t, func(o *Options) { o.StateDir = state })
			if p, err := m.Get(t.Context(), rec.ID); err != nil || p.TerminalCause != tool.CauseLost {
				t.Errorf("%+v %v", p, err)
			}
			if _, err := m.Signal(t.Context(), rec.ID, "SIGKILL"); err == nil {
				t.Error("it was signalled")
			}
			if _, err := m.Stop(t.Context(), rec.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

// leave makes a registry as a worker leaves it that had this record when it died.
func leave(t *testing.T, state string, rec record) {
	t.Helper()
	r, err := openRegistry(t.Context(), state, "s1")
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = r.settle()
	err = errors.Join(err, r.journal.put(rec), os.WriteFile(filepath.Join(r.dir, instanceFile), []byte("somebody"), 0o600), r.close())
	if err != nil {
		t.Fatal(err)
	}
}

// whoIs is the identity of a running process.
func whoIs(pid int) identity {
	id := here()
	id.Start, _ = startTime(pid)
	return id
}

// helpRecycle is the first process of a pid namespace, where the next pid can
// be chosen.
func helpRecycle() {
	must(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	must(unix.Mount("proc", "/proc", "proc", 0, ""))
	worker := exec.Command("/proc/self/exe")
	worker.Env = append(os.Environ(), helperVariable+"=worker")
	id, pid, instance, err := killedWorker(worker)
	must(err)
	// As long as its group lives the number is not given to anybody.
	q := quarry{match: func(p procInfo) bool { return marked(p.pid, instance+"/") }}
	_, err = q.hunt(context.Background(), hard(), nil)
	must(err)
	for p, _ := nextZombie(); p != 0; p, _ = nextZombie() {
		_, _, err = reap(p) // they came to us, the first process
		must(err)
	}
	// A thread of ours may take the number first, and a process that began in the
	// same tick of the clock as the one that is gone cannot be told from it.
	var c *exec.Cmd
	var first, began uint64
	for c == nil || c.Process.Pid != pid || began == first {
		if c != nil {
			must(c.Process.Kill())
			_ = c.Wait() // it was killed just now
		}
		c = innocent()
		must(os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0))
		must(c.Start())
		began, _ = startTime(c.Process.Pid)
		if first == 0 {
			first = began
		}
	}
	m := helperManager(false)
	p, err := m.Get(context.Background(), id)
	must(err)
	if p.TerminalCause != tool.CauseLost || p.PID != pid {
		must(fmt.Errorf("the record is %+v", p))
	}
	must(m.Close(context.Background()))
	info, err := readProc(strconv.Itoa(pid))
	must(err)
	if info.zombie {
		must(errors.New("the innocent was killed"))
	}
	fmt.Println("fine")
}

// The same for real: another process has the very pid.
func TestRecycledPIDForReal(t *testing.T) {
	c := helper(t, "recycle")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	out, err := c.Output()
	if err != nil || string(out) != "fine\n" {
		t.Errorf("%s %v", out, err)
	}
}

// When the memory of a container is short commands are ended before the one who runs
// them, and with them what they have started. Elsewhere they are like everybody else.
func TestEndedFirst(t *testing.T) {
	const line = "read x; cat /proc/self/oom_score_adj; sh -c 'cat /proc/self/oom_score_adj'"
	own, err := os.ReadFile("/proc/self/oom_score_adj")
	if err != nil {
		t.Fatal(err)
	}
	for contained, want := range map[bool]string{true: "1000\n1000\n", false: string(own) + string(own)} {
		m, _ := newTest(t, func(o *Options) { o.Contained = contained })
		r, err := m.Run(t.Context(), Command{Command: line, Stdin: []byte("started\n")})
		if err != nil || string(r.Stdout) != want {
			t.Errorf("foreground, contained %t: %q, %v", contained, r.Stdout, err)
		}
		p := start(t, m, line)
		if _, err := m.Write(t.Context(), p.ID, []byte("started\n")); err != nil {
			t.Fatal(err)
		}
		if got := all(t, m, p.ID); got != want {
			t.Errorf("background, contained %t: %q", contained, got)
		}
	}
}
