package endpoint

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// insideHidden says how far a run of TestAsRootHiddenPeers is inside.
const insideHidden = "CAISSON_TEST_HIDDEN"

// Where /proc hides, as it does of the ssh server of a login even from its own user,
// who is below something hidden may connect unless it is confined.
func TestAsRootHiddenPeers(t *testing.T) {
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
		testHiddenPeers(t)
	}
}

// again runs the test in a process of its own.
func again(t *testing.T, inside string, attributes *syscall.SysProcAttr) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAsRootHiddenPeers$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), insideHidden+"="+inside, "TMPDIR=/tmp")
	cmd.SysProcAttr = attributes
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestAsRootHiddenPeers") {
		t.Errorf("inside, as %s: %v\n%s", inside, err, out)
	}
}

func testHiddenPeers(t *testing.T) {
	dir := shortDir(t)
	worker, limited := filepath.Join(dir, "worker"), filepath.Join(dir, "limited")
	command := startServer(t, worker, true)
	startPart(t, "no-new-privs", "serve", limited, "reaper")
	told := func(parts ...string) string {
		t.Helper()
		fifo := filepath.Join(t.TempDir(), "out")
		if err := unix.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := part(append(parts, fifo)...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		answer := readAll(t, fifo)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		return answer
	}
	for _, c := range []struct {
		name, told, want string
	}{
		{"a login below its ssh server", told("hide", "dial", worker), "welcome"},
		{"a command that shows itself", command("dial", worker), "started by this process"},
		{"a confined command that hides what it is below", command("no-new-privs hide dial", worker), "confined"},
		{"a login, of a worker that is confined itself", told("no-new-privs", "hide", "dial", limited), "which /proc hides"},
		{"a login that hides itself", told("hidden", "dial", worker), "foreign: ancestors of"},
		{"what has no limits, of a worker that is confined itself", told("hide", "dial", limited), "welcome"},
	} {
		if !strings.Contains(c.told, c.want) || c.want != "welcome" && !strings.HasPrefix(c.told, "a command: ") && !strings.HasPrefix(c.want, "foreign: ") {
			t.Errorf("%s was told %q, want %q", c.name, c.told, c.want)
		}
	}

	for name, c := range map[string]struct {
		parts []string
		want  string
	}{
		"a worker that a login has started":        {[]string{"hide", "serve"}, ""},
		"a confined command in the worker's place": {[]string{"no-new-privs", "hide", "serve"}, "which /proc hides"},
	} {
		path := filepath.Join(shortDir(t), "s")
		startPart(t, append(c.parts, path)...)
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		err = CheckServer(conn.(*net.UnixConn))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		conn.Close()
	}
}
