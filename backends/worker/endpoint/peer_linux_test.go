package endpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// The test binary plays all parts, each in a process of its own:
//
//	serve SOCKET        is a worker that tells each peer what it thinks of it and
//	                    runs, for each line of its input, one of the parts below
//	dial SOCKET OUT     connects and writes what it was told into OUT
//	orphan SOCKET OUT   dials from a process that has lost its parent
//	confined SOCKET OUT the same with no_new_privs
//	no-new-privs PART…  plays a part with no_new_privs
//	hide PART…          is what /proc may hide, and has a child play a part
//	hidden PART…        plays a part, and is what /proc may hide
func TestMain(m *testing.M) {
	if isPart() {
		if err := play(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Under the race detector every part would sleep for a second at its end.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

func isPart() bool { return len(os.Args) > 2 && os.Args[1] == "part" }

// A part's limits are those of its first thread, by which others judge it and from
// which its children inherit, and not those of whichever its play happens to be on.
func init() {
	if isPart() {
		runtime.LockOSThread()
	}
}

func part(args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", append([]string{"part"}, args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}

func play(name string, args []string) error {
	switch name {
	case "serve":
		return serve(args[0], len(args) > 1)
	case "dial":
		return dialAndTell(args[0], args[1])
	case "no-new-privs":
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		return play(args[0], args[1:])
	case "hidden":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		return play(args[0], args[1:])
	case "hide":
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return err
		}
		cmd := part(args...)
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		return cmd.Run()
	case "confined":
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
		fallthrough
	case "orphan":
		cmd := part("orphaned", args[0], args[1], strconv.Itoa(os.Getpid()))
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	case "orphaned":
		parent, err := strconv.Atoi(args[2])
		if err != nil {
			return err
		}
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for os.Getppid() == parent {
			<-tick.C
		}
		return dialAndTell(args[0], args[1])
	}
	return fmt.Errorf("no part %q", name)
}

func serve(path string, reaper bool) error {
	if reaper {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	peers, err := NewPeers(WorkerName)
	if err != nil {
		return err
	}
	l, err := Listen(path)
	if err != nil {
		return err
	}
	go func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			told := "welcome"
			if err := peers.Check(c); err != nil {
				told = err.Error()
				switch {
				case errors.Is(err, ErrCommand):
					told = "a command: " + told
				case errors.Is(err, ErrForeign):
					told = "foreign: " + told
				}
			}
			fmt.Fprint(c, told)
			c.Close()
		}
	}()
	fmt.Println("ready")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		cmd := part(strings.Fields(in.Text())...)
		cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
		if err := cmd.Run(); err != nil {
			return err
		}
	}
	return nil
}

func dialAndTell(path, out string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	told, err := io.ReadAll(conn)
	if err != nil {
		return err
	}
	return os.WriteFile(out, told, 0o600)
}

// startServer starts a serving process; run makes it play a part and returns
// what that part was told.
func startServer(t *testing.T, path string, reaper bool) (run func(part, path string) string) {
	t.Helper()
	args := []string{"serve", path}
	if reaper {
		args = append(args, "reaper")
	}
	return startPart(t, args...)
}

// startPart starts a part that ends up serving.
func startPart(t *testing.T, args ...string) (run func(part, path string) string) {
	t.Helper()
	cmd := part(args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the server said %q, %v", line, err)
	}
	return func(part, path string) string {
		t.Helper()
		fifo := filepath.Join(t.TempDir(), "out")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(in, part, path, fifo)
		return readAll(t, fifo)
	}
}

// readAll reads a pipe by name until its writer has closed it.
func readAll(t *testing.T, fifo string) string {
	t.Helper()
	type result struct {
		b   []byte
		err error
	}
	read := make(chan result, 1)
	go func() {
		b, err := os.ReadFile(fifo)
		read <- result{b, err}
	}()
	select {
	case r := <-read:
		if r.err != nil {
			t.Fatal(r.err)
		}
		return string(r.b)
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was told")
		return ""
	}
}

func TestPeers(t *testing.T) {
	dir := shortDir(t)
	reaper, careless := filepath.Join(dir, "reaper"), filepath.Join(dir, "careless")
	byReaper := startServer(t, reaper, true)
	byCareless := startServer(t, careless, false)

	dial := func(path string) string {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		told, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		return string(told)
	}
	outside := func(kind, path string) string {
		fifo := filepath.Join(t.TempDir(), "out")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := part(kind, path, fifo).Run(); err != nil {
			t.Fatal(err)
		}
		return readAll(t, fifo)
	}

	for _, c := range []struct {
		name, told, want string
	}{
		{"a process beside the worker", dial(reaper), "welcome"},
		{"an orphan of nobody's", outside("orphan", reaper), "welcome"},
		{"its own command", byReaper("dial", reaper), "started by this process"},
		{"its own command's orphan", byReaper("orphan", reaper), "started by this process"},
		{"another worker's command", byCareless("dial", reaper), "started by " + WorkerName},
		{"another worker's command, the other way", byReaper("dial", careless), "started by " + WorkerName},
		{"a confined orphan of a worker that keeps none", byCareless("confined", reaper), "confined"},
	} {
		if !strings.Contains(c.told, c.want) || c.want != "welcome" && !strings.HasPrefix(c.told, "a command: ") {
			t.Errorf("%s was told %q, want %q", c.name, c.told, c.want)
		}
	}
}

// What says nothing against a peer is neither of the two reasons to give up.
func TestPeersThatCannotBeSeen(t *testing.T) {
	l, err := Listen(filepath.Join(shortDir(t), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	check := func(c *net.UnixConn, want string) {
		t.Helper()
		err := new(Peers).Check(c)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, ErrCommand) || errors.Is(err, ErrForeign) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	cmd := part("dial", l.Addr().String(), "never")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	check(conn, "too many open files")
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it was not killed")
	}
	check(conn, "ancestors of process "+strconv.Itoa(cmd.Process.Pid))
}

// Another user's process is no command, and stays another user's.
func TestAsRootForeignPeers(t *testing.T) {
	dir := shortDir(t)
	path, fifo := filepath.Join(dir, "s"), filepath.Join(dir, "out")
	startServer(t, path, true)
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []string{dir, path, fifo} {
		if err := os.Chmod(open, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	cmd := part("dial", path, fifo)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if told := readAll(t, fifo); !strings.HasPrefix(told, "foreign: ") || !strings.Contains(told, "belongs to user 65534") {
		t.Errorf("it was told %q", told)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// A command that listens where its worker should is not taken for it.
func TestCheckServer(t *testing.T) {
	dir := shortDir(t)
	actual, fake := filepath.Join(dir, "real"), filepath.Join(dir, "fake")
	startServer(t, actual, true)
	check := func(path string) error {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		return CheckServer(conn.(*net.UnixConn))
	}
	if err := check(actual); err != nil {
		t.Errorf("the worker: %v", err)
	}

	// A worker's command that listens: here this process's child that takes the
	// worker's name, and starts the listener.
	cmd := part("serve", filepath.Join(dir, "outer"))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the worker said %q, %v", line, err)
	}
	fmt.Fprintln(in, "serve", fake)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("the command said %q, %v", line, err)
	}
	if err := check(fake); err == nil || !strings.Contains(err.Error(), "started by "+WorkerName) {
		t.Errorf("a command in the worker's place: %v", err)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestReadProcess(t *testing.T) {
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if self.parent != os.Getppid() || self.start == 0 {
		t.Errorf("read %+v, parent %d", self, os.Getppid())
	}
	if _, err := ancestry(1 << 30); err == nil {
		t.Error("a process that does not exist has ancestors")
	}
}
