package supervise

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker"
	"github.com/caisson-dev/caisson/backends/worker/endpoint"
)

// becomeFirst turns the first process of a new pid namespace into caisson init.
func becomeFirst(args []string) {
	err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	if err == nil {
		err = unix.Mount("proc", "/proc", "proc", 0, "")
	}
	if err == nil {
		err = syscall.Exec(args[0], args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "become the first process:", err)
	os.Exit(1)
}

// supervised is a running init.
type supervised struct {
	cmd   *exec.Cmd
	done  chan error
	ended bool
}

func startInit(t *testing.T, o InitOptions, first bool) *supervised {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{exe, "init"}, o.Args()...)
	cmd := exec.Command(exe, args[1:]...)
	if first {
		cmd = exec.Command(exe, append([]string{"first"}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
		}
	}
	log := new(strings.Builder)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &supervised{cmd: cmd, done: make(chan error, 1)}
	go func() { s.done <- cmd.Wait() }()
	t.Cleanup(func() {
		if !s.ended {
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			s.wait(t)
		}
		if t.Failed() {
			t.Logf("init: %s", log)
		}
	})
	awaitSocket(t, o.Control)
	return s
}

// wait returns how init ended.
func (s *supervised) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.done:
		s.ended = true
		return err
	case <-time.After(patience):
		t.Fatal("init does not end")
		return nil
	}
}

// awaitSocket returns when somebody listens at path.
func awaitSocket(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		listens, err := Listening(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if listens {
			return
		}
	}
	t.Fatalf("nobody listens on %s", path)
}

// outsidePID is the pid of the process that listens at path, as seen from here.
func outsidePID(t *testing.T, path string) int {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var cred *unix.Ucred
	if ctl := raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); ctl != nil || err != nil {
		t.Fatal(ctl, err)
	}
	return int(cred.Pid)
}

// exists reports whether there is a process of that pid, a zombie included.
func exists(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil
}

// running are the pids of processes with this argument list.
func running(t *testing.T, args ...string) (pids []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err == nil && strings.TrimRight(string(b), "\x00") == strings.Join(args, "\x00") {
			pid, err := strconv.Atoi(strings.Split(path, "/")[2])
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	return pids
}

func initOptions(t *testing.T) (InitOptions, AttachOptions) {
	o := AttachOptions{Worker: options(t), Mark: "m"}
	o.Control = filepath.Join(filepath.Dir(o.Worker.Listen), "init.sock")
	return InitOptions{Control: o.Control, Lifetime: time.Minute}, o
}

// Init starts what attach asks for, buries a killed worker with all that it
// left, starts another one, and ends everything when it is told to.
func TestInit(t *testing.T) {
	for _, first := range []bool{false, true} {
		t.Run(fmt.Sprintf("first process %v", first), func(t *testing.T) {
			io, ao := initOptions(t)
			supervisor := startInit(t, io, first)
			root := t.TempDir()
			c := connect(t, startAttach(t, ao), ao.Mark, root)

			mark := strconv.Itoa(100000 + os.Getpid()*2 + len(t.Name()))
			p := startProcess(t, c, "(env -i setsid sleep "+mark+" &); exec sleep "+mark)
			tick := time.NewTicker(2 * time.Millisecond)
			defer tick.Stop()
			for len(running(t, "sleep", mark)) < 2 {
				<-tick.C
			}

			victim := outsidePID(t, ao.Worker.Listen)
			if err := syscall.Kill(victim, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			<-c.Done()
			// Its socket takes connections until it has ended altogether.
			for exists(victim) {
				<-tick.C
			}
			c = connect(t, startAttach(t, ao), ao.Mark, root)
			if got := getProcess(t, c, p.ID); got.TerminalCause != tool.CauseLost || got.Status != tool.ProcessFailed {
				t.Errorf("the process is %+v", got)
			}
			if left := running(t, "sleep", mark); len(left) > 0 {
				t.Errorf("processes %v of the killed worker are left", left)
			}
			if again := outsidePID(t, ao.Worker.Listen); again == victim {
				t.Error("the worker is the same one")
			}

			startProcess(t, c, "exec sleep "+mark)
			if err := supervisor.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := supervisor.wait(t); err != nil {
				t.Errorf("init ended with %v", err)
			}
			if left := running(t, "sleep", mark); len(left) > 0 {
				t.Errorf("processes %v outlived init", left)
			}
			for _, path := range []string{ao.Control, ao.Worker.Listen} {
				if _, err := os.Lstat(path); !os.IsNotExist(err) {
					t.Errorf("%s is still there: %v", path, err)
				}
			}
		})
	}
}

// Whoever comes before init listens waits for it, and gets a worker of init's: any
// other would be killed with what another session's worker leaves behind.
func TestAttachBeforeInit(t *testing.T) {
	io, ao := initOptions(t)
	early := startAttach(t, ao)
	starting := filepath.Join(worker.SessionDir(ao.Worker.State, ao.Worker.Session), "start.lock")
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for held, err := endpoint.Held(starting); !held; held, err = endpoint.Held(starting) {
		if err != nil {
			t.Fatal(err)
		}
		<-tick.C
	}
	supervisor := startInit(t, io, false)
	startProcess(t, connect(t, early, ao.Mark, t.TempDir()), "true")
	worker := outsidePID(t, ao.Worker.Listen)
	children := childrenOf(t, supervisor.cmd.Process.Pid)
	if !slices.ContainsFunc(children, func(c offspring) bool { return c.pid == worker }) {
		t.Errorf("the worker %d is none of init's children %v", worker, children)
	}
}

// The idle limit of the last worker is that of the environment.
func TestInitIdle(t *testing.T) {
	t.Parallel() // it waits more than it works
	io, ao := initOptions(t)
	io.Lifetime, ao.Worker.Lifetime = shortLife+time.Second, shortLife
	supervisor := startInit(t, io, false)
	c := connect(t, startAttach(t, ao), ao.Mark, t.TempDir())
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := supervisor.wait(t); err != nil {
		t.Errorf("init ended with %v", err)
	}
	awaitEnd(t, ao.Worker)
}

// Nobody ever came.
func TestInitUnused(t *testing.T) {
	t.Parallel() // it waits more than it works
	io, _ := initOptions(t)
	io.Lifetime = time.Second
	if err := startInit(t, io, false).wait(t); err != nil {
		t.Errorf("init ended with %v", err)
	}
}

// The first to come may take longer than the idle limit.
func TestInitAwaitsTheFirst(t *testing.T) {
	t.Parallel() // it waits more than it works
	io, ao := initOptions(t)
	io.Lifetime = time.Second
	supervisor := startInit(t, io, false)
	select {
	case err := <-supervisor.done:
		supervisor.ended = true
		t.Fatalf("init ended with %v", err)
	case <-time.After(2 * io.Lifetime):
	}
	connect(t, startAttach(t, ao), ao.Mark, t.TempDir())
}

// A persistent environment outlives its workers.
func TestInitPersistent(t *testing.T) {
	t.Parallel() // it waits more than it works
	io, ao := initOptions(t)
	io.Lifetime, io.Persistent, ao.Worker.Lifetime = time.Second, true, shortLife
	startInit(t, io, false)
	root := t.TempDir()
	if err := connect(t, startAttach(t, ao), ao.Mark, root).Close(); err != nil {
		t.Error(err)
	}
	awaitEnd(t, ao.Worker)
	connect(t, startAttach(t, ao), ao.Mark, root)
}

// A worker that cannot be started says why, through init and attach.
func TestInitStartFails(t *testing.T) {
	io, ao := initOptions(t)
	startInit(t, io, false)
	ao.Worker.Listen = "/proc/none/w.sock"
	err := ask(t.Context(), ao.Control, ao.Worker)
	if err == nil || !strings.Contains(err.Error(), "socket directory") {
		t.Errorf("ask for a worker that cannot listen: %v", err)
	}
}

// A command is refused at the control socket as at its worker's.
func TestCommandAtControlSocket(t *testing.T) {
	io, ao := initOptions(t)
	startInit(t, io, false)
	c := connect(t, startAttach(t, ao), ao.Mark, t.TempDir())
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	wanted := ao
	wanted.Worker.Session = "s2"
	wanted.Worker.Listen += "2"
	done := filepath.Join(t.TempDir(), "done")
	if err := unix.Mkfifo(done, 0o600); err != nil {
		t.Fatal(err)
	}
	line := strings.Join(append([]string{exe, "attach"}, wanted.Args()...), " ") + " </dev/null >" + done + " 2>&1"
	startProcess(t, c, line)
	said, err := os.ReadFile(done)
	if err != nil || !strings.HasSuffix(string(said), "ask init for a worker: init refused the connection\n") {
		t.Errorf("attach of a command said %q, %v", said, err)
	}
	if _, err := os.Stat(filepath.Join(worker.SessionDir(ao.Worker.State, "s2"), "worker.log")); !os.IsNotExist(err) {
		t.Errorf("a worker was started: %v", err)
	}
}

// Children of init that nobody knows are reaped.
func TestInitReaps(t *testing.T) {
	io, ao := initOptions(t)
	supervisor := startInit(t, io, true)
	connect(t, startAttach(t, ao), ao.Mark, t.TempDir())
	// An orphan that a worker does not keep: here of the worker's starter's kind,
	// a process that enters the namespace and loses its parent there.
	enter, err := exec.LookPath("nsenter")
	if err != nil {
		t.Fatal(err)
	}
	pid := strconv.Itoa(supervisor.cmd.Process.Pid)
	args := []string{"--target", pid, "--pid", "--mount"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	cmd := exec.Command(enter, append(args, "sh", "-c", "(sh -c 'exit 7' &) ; (setsid sleep 0.1 &)")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		children := childrenOf(t, supervisor.cmd.Process.Pid)
		zombies := slices.ContainsFunc(children, func(c offspring) bool { return c.state == "Z" })
		if len(children) == 1 && !zombies {
			return // the worker alone
		}
		if time.Now().After(deadline) {
			t.Fatalf("children of init: %v", children)
		}
	}
}

type offspring struct {
	pid   int
	state string
}

func childrenOf(t *testing.T, parent int) (all []offspring) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
		if fields[1] != strconv.Itoa(parent) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(path, "/")[2])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, offspring{pid, fields[0]})
	}
	return all
}
