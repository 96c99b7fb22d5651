package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/worker/confine/confinetest"
)

// helperVariable makes this test program try things instead of running tests.
const helperVariable = "CONFINE_TEST_HELPER"

func TestMain(m *testing.M) {
	switch os.Getenv(helperVariable) {
	case "write":
		tryWrites(os.Args[1:])
	case "absent":
		withoutLandlock()
	default:
		goleak.VerifyTestMain(m)
	}
}

// tryWrites makes every kind of change in the directory that it is given, and
// prints which are refused. It is what a confined command can do its best at.
func tryWrites(args []string) {
	dir := args[0]
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, try := range []struct {
		what string
		do   func() error
	}{
		{"create", func() error { return touch(in("new")) }},
		{"write", func() error { return os.WriteFile(in("file"), []byte("x"), 0o600) }},
		{"append", func() error {
			f, err := os.OpenFile(in("file"), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
			return f.Close()
		}},
		{"truncate", func() error { return os.Truncate(in("file"), 0) }},
		{"open truncating", func() error {
			fd, err := unix.Open(in("file"), unix.O_RDONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
			if err != nil {
				return err
			}
			return unix.Close(fd)
		}},
		{"mkdir", func() error { return os.Mkdir(in("newdir"), 0o700) }},
		{"rmdir", func() error { return os.Remove(in("empty")) }},
		{"symlink", func() error { return os.Symlink("x", in("newlink")) }},
		{"link", func() error { return os.Link(in("other"), in("newhard")) }},
		{"link into a directory", func() error { return os.Link(in("other"), in("sub/newhard")) }},
		{"rename", func() error { return os.Rename(in("other"), in("other2")) }},
		{"rename into a directory", func() error { return os.Rename(in("moved"), in("sub/moved")) }},
		{"fifo", func() error { return unix.Mkfifo(in("newfifo"), 0o600) }},
		{"mknod", func() error { return unix.Mknod(in("newnode"), unix.S_IFREG|0o600, 0) }},
		{"socket", func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Bind(fd, &unix.SockaddrUnix{Name: in("s")})
		}},
		{"remove", func() error { return os.Remove(in("file")) }},
		{"link out", func() error {
			return os.Link(in("keep"), filepath.Join(os.Getenv("ALLOWED"), fmt.Sprint("stolen", os.Getpid())))
		}},
	} {
		if err := try.do(); err != nil {
			fmt.Printf("%s: %v\n", try.what, err)
		}
	}
	if _, err := os.ReadFile(in("keep")); err != nil {
		fmt.Println("read:", err)
	}
}

// subject is a directory for tryWrites.
func subject(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"sub", "empty"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"file", "other", "moved", "keep"} {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("contents"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run starts a command on the launcher's thread and returns what it prints.
func run(t *testing.T, l *Launcher, c *exec.Cmd) string {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	var err error
	if !l.Do(func() { err = c.Start() }) {
		t.Fatal("the launcher is closed")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	return out.String()
}

func tries(dir, allowed string) *exec.Cmd {
	c := exec.Command("/proc/self/exe", dir)
	c.Env = append(os.Environ(), helperVariable+"=write", "ALLOWED="+allowed, "GORACE=atexit_sleep_ms=0")
	return c
}

// A started command inherits the limits of its thread, and every kind of write
// is limited, not one more.
func TestCommandsAreConfined(t *testing.T) {
	for _, mode := range []tool.Mode{tool.Standard, tool.ReadOnly} {
		t.Run(string(mode), func(t *testing.T) {
			root, more, temp, outside := subject(t), subject(t), subject(t), subject(t)
			l, err := NewLauncher(Policy{Mode: mode, Root: root, Writable: []string{more, "/nonexistent"}, Temp: temp})
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			free := map[string]bool{temp: true, root: mode == tool.Standard, more: mode == tool.Standard, outside: false}
			for dir, free := range free {
				got := strings.Split(strings.TrimSuffix(run(t, l, tries(dir, temp)), "\n"), "\n")
				if free {
					if len(got) != 1 || got[0] != "" {
						t.Errorf("refused in %s: %q", dir, got)
					}
					continue
				}
				if len(got) != 17 {
					t.Errorf("%d of 17 writes were refused: %q", len(got), got)
				}
				for _, line := range got {
					if !strings.Contains(line, "permission denied") && !strings.Contains(line, "invalid cross-device link") {
						t.Errorf("refused for another reason: %s", line)
					}
				}
			}
			if b, err := os.ReadFile(filepath.Join(outside, "file")); err != nil || string(b) != "contents" {
				t.Errorf("the file outside: %q %v", b, err)
			}
			// This program itself is as free as before.
			if got := run(t, unlimited(t), tries(outside, temp)); got != "" {
				t.Errorf("refused outside of the thread: %s", got)
			}
		})
	}
}

// Commands kept apart signal each other and nothing else; with an older Landlock
// the policy holds without that.
func TestCommandsAreApart(t *testing.T) {
	abi, err := ABI()
	if err != nil || abi < ApartABI {
		t.Skipf("this kernel has Landlock ABI %d (%v), and to keep commands apart needs %d", abi, err, ApartABI)
	}
	for _, tt := range []struct {
		name         string
		apart        bool
		abi          func() (int, error)
		others, ours bool // whether their commands can be signalled
	}{
		{"apart", true, nil, false, true},
		{"not apart", false, nil, true, true},
		{"an older Landlock", true, func() (int, error) { return ApartABI - 1, nil }, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			launcher := func() *Launcher {
				l, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: t.TempDir(), Apart: tt.apart, ABI: tt.abi})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(l.Close)
				return l
			}
			one, two := launcher(), launcher()
			victim := exec.Command("sleep", "300")
			if !one.Do(func() { err = victim.Start() }) || err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = victim.Process.Kill()
				_ = victim.Wait() // it was killed just now
			})
			signals := func(l *Launcher, pid int) bool {
				var err error
				kill := exec.Command("sh", "-c", fmt.Sprintf("kill -0 %d", pid))
				if !l.Do(func() { err = kill.Start() }) || err != nil {
					t.Fatal(err)
				}
				return kill.Wait() == nil
			}
			if got := signals(one, victim.Process.Pid); got != tt.ours {
				t.Errorf("a command of the same launcher: %t", got)
			}
			if got := signals(two, victim.Process.Pid); got != tt.others {
				t.Errorf("a command of another launcher: %t", got)
			}
			if got := signals(two, os.Getpid()); got != tt.others {
				t.Errorf("this program: %t", got)
			}
		})
	}
}

// A device leads past every path, so that none is made even where everything
// else may be.
func TestNoDevicesAreMade(t *testing.T) {
	root := t.TempDir()
	l, err := NewLauncher(Policy{Root: root, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, kind := range map[string]uint32{"character": unix.S_IFCHR, "block": unix.S_IFBLK} {
		var made error
		if !l.Do(func() { made = unix.Mknod(filepath.Join(root, name), kind|0o600, 0) }) {
			t.Fatal("the launcher is closed")
		}
		if !errors.Is(made, unix.EACCES) {
			t.Errorf("%s device: %v", name, made)
		}
	}
}

// unlimited is a launcher that limits nothing.
func unlimited(t *testing.T) *Launcher {
	t.Helper()
	l, err := NewLauncher(Policy{Mode: tool.Unconfined})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

func TestPrivilegesCannotBeGained(t *testing.T) {
	l, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	const status = "/proc/self/status"
	if got := run(t, l, exec.Command("grep", "NoNewPrivs", status)); got != "NoNewPrivs:\t1\n" {
		t.Errorf("confined: %q", got)
	}
	before, err := os.ReadFile(status)
	if err != nil {
		t.Fatal(err)
	}
	if got := run(t, unlimited(t), exec.Command("grep", "NoNewPrivs", status)); !bytes.Contains(before, []byte(got)) {
		t.Errorf("unconfined: %q", got)
	}
}

func TestDevices(t *testing.T) {
	l, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := run(t, l, exec.Command("/bin/sh", "-c", `for d in null zero random urandom; do echo x > /dev/$d || echo $d; done
		(echo x > /dev/full) 2>&1 | grep -q denied && echo full
		: <> /dev/ptmx || echo ptmx
		(rm /dev/null) 2>/dev/null && echo removed
		(: > /dev/new-device) 2>/dev/null && echo made; true`))
	if got != "" {
		t.Errorf("wrong: %s", got)
	}
}

func TestManyThreads(t *testing.T) {
	outside := subject(t)
	for range 20 {
		l, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		var err2 error
		l.Do(func() { err2 = touch(filepath.Join(outside, "new")) })
		l.Close()
		if !errors.Is(err2, unix.EACCES) {
			t.Errorf("on the thread: %v", err2)
		}
		// Threads that the runtime makes meanwhile inherit nothing.
		free := make(chan error, 8)
		for range cap(free) {
			go func() { free <- touch(filepath.Join(outside, "free")) }()
		}
		for range cap(free) {
			if err := <-free; err != nil {
				t.Fatalf("on another thread: %v", err)
			}
		}
	}
}

func TestMissingTemp(t *testing.T) {
	if _, err := NewLauncher(Policy{Mode: tool.ReadOnly, Temp: "/nonexistent"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error is %v", err)
	}
}

func TestPathsThatLeadNowhere(t *testing.T) {
	dir := t.TempDir()
	file, loop, shut := filepath.Join(dir, "file"), filepath.Join(dir, "loop"), filepath.Join(dir, "shut")
	err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(loop, loop), os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "link")),
		os.MkdirAll(filepath.Join(shut, "in"), 0o700), os.Chmod(shut, 0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(shut, 0o700) })
	p := Policy{Root: t.TempDir(), Temp: t.TempDir()}
	for _, name := range []string{"missing", "link", "file/in", "loop", "loop/in", strings.Repeat("x", 256), "shut/in"} {
		p.Writable = append(p.Writable, filepath.Join(dir, name))
	}
	l, err := NewLauncher(p)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestProve(t *testing.T) {
	dir := t.TempDir()
	if err := Prove(dir); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left: %v %v", left, err)
	}
	// Where nothing is limited the proof fails.
	inside, outside := subject(t), subject(t)
	if err := proveWrites(inside, outside, filepath.Join(outside, "file")); err == nil {
		t.Error("proved without limits")
	}
}

// withoutLandlock prints what confinement says where there is no Landlock.
func withoutLandlock() {
	if err := confinetest.WithoutLandlock(); err != nil {
		fmt.Println(err)
	}
	_, err := NewLauncher(Policy{Mode: tool.Standard, Root: os.TempDir(), Temp: os.TempDir()})
	fmt.Println(tool.KindOf(err), err)
	err = Prove(os.TempDir())
	fmt.Println(tool.KindOf(err), err)
}

func TestAbsentLandlock(t *testing.T) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), helperVariable+"=absent")
	out, err := c.CombinedOutput()
	const want = `unsupported permission mode standard needs Landlock ABI 3, and this system has none: ask the kernel for its Landlock version: function not implemented
unsupported permission mode read_only needs Landlock ABI 3, and this system has none: ask the kernel for its Landlock version: function not implemented
`
	if err != nil || string(out) != want {
		t.Errorf("%s %v", out, err)
	}
}

func BenchmarkLauncher(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		l, err := NewLauncher(Policy{Mode: tool.Standard, Root: dir, Temp: dir})
		if err != nil {
			b.Fatal(err)
		}
		l.Close()
	}
}
