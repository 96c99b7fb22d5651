//go:build unix

package program

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell starts a program that runs the script.
func shell(t *testing.T, script string, grace time.Duration) *Program {
	t.Helper()
	p, err := Start(Options{Argv: []string{"sh", "-c", script}, Stderr: io.Discard, Grace: grace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// line reads a line of its output.
func line(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	s, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("%q, %v", s, err)
	}
	return strings.TrimSpace(s)
}

// gone waits until there is no process with the pid, or only a zombie that its
// parent has yet to reap.
func gone(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for {
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		if errors.Is(syscall.Kill(n, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ") {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the process %s is still there", pid)
		}
	}
}

func TestStream(t *testing.T) {
	p := shell(t, "cat; echo end", time.Minute)
	if _, err := p.Write([]byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if got := line(t, bufio.NewReader(p)); got != "hello" {
		t.Errorf("read %q", got)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if err := errors.Join(p.Close(), p.Err()); err != nil {
		t.Error(err)
	}
}

func TestNoSuchProgram(t *testing.T) {
	for _, name := range []string{"no-such-program-of-this-test", "/no/such/program", "/"} {
		if _, err := Start(Options{Argv: []string{name}}); err == nil {
			t.Errorf("%s was started", name)
		}
	}
}

func TestExit(t *testing.T) {
	p := shell(t, "echo out; exit 3", time.Minute)
	if out, err := io.ReadAll(p); string(out) != "out\n" || err != nil {
		t.Errorf("read %q, %v", out, err)
	}
	<-p.Exited()
	var exit *ExitError
	if err := p.Err(); !errors.As(err, &exit) || exit.State != "exit status 3" || exit.Asked {
		t.Errorf("ended with %v", err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("what has ended is closed with %v", err)
	}
}

// TestBadEnd: an exit that fails after the end of input is an error of Close.
func TestBadEnd(t *testing.T) {
	p := shell(t, "cat; exit 4", time.Minute)
	var exit *ExitError
	if err := p.Close(); !errors.As(err, &exit) || exit.State != "exit status 4" || !exit.Asked {
		t.Errorf("closed with %v", err)
	}
}

// TestWriterIsNotHeldUp: a program that says more than anybody reads at its end
// is no reason for force.
func TestWriterIsNotHeldUp(t *testing.T) {
	p := shell(t, "cat; head -c 1000000 /dev/zero", time.Minute)
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestGroupEndsWithIt: what a program leaves behind in its group ends with it, and
// output that it holds is not waited for.
func TestGroupEndsWithIt(t *testing.T) {
	p := shell(t, "sleep 300 & echo $!", time.Minute)
	r := bufio.NewReader(p)
	pid := line(t, r)
	if rest, err := io.ReadAll(r); len(rest) != 0 || err != nil {
		t.Errorf("read %q, %v", rest, err)
	}
	<-p.Exited()
	gone(t, pid)
}

// TestForce: a program that does not heed the end of its input is killed, with
// its whole tree.
func TestForce(t *testing.T) {
	script := "trap '' TERM HUP; sleep 300 & echo $!; "
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		script += "setsid sh -c 'sleep 300 & echo $!; sleep 300' & "
	} else {
		script += "sleep 300 & echo $!; "
	}
	p := shell(t, script+"while :; do sleep 1; done", 50*time.Millisecond)
	r := bufio.NewReader(p)
	pids := []string{line(t, r), line(t, r), strconv.Itoa(p.Pid())}
	if err := p.Close(); !errors.Is(err, ErrKilled) {
		t.Errorf("closed with %v", err)
	}
	for _, pid := range pids {
		gone(t, pid)
	}
}

// TestHeld: who holds a program's output or standard error after its exit is told, and
// nobody where nobody does, or where nobody asked.
func TestHeld(t *testing.T) {
	t.Parallel()
	// It is in a session of its own when it opens the pipe, and ends with that.
	leaves := func(streams string) string {
		return "setsid sh -c 'exec cat <pipe' </dev/null " + streams + " & exec cat >/dev/null"
	}
	for _, tt := range []struct {
		name, script string
		letGo        time.Duration
		leaves       bool
		want         []string
	}{
		{"nobody", "cat", 10 * time.Second, false, nil},
		{"its group", "sleep 300 & cat", 10 * time.Second, false, nil},
		{"output", leaves("2>/dev/null"), 200 * time.Millisecond, true, []string{"standard output by pid", "cat"}},
		{"standard error", leaves(">/dev/null"), 200 * time.Millisecond, true, []string{"standard error by pid", "cat"}},
		{"nobody asks", leaves(""), 0, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// Each has a pipe of its own: the last one's may still be read.
			pipe := filepath.Join(t.TempDir(), "pipe")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			script := "cd '" + filepath.Dir(pipe) + "'; " + tt.script
			p, err := Start(Options{Argv: []string{"sh", "-c", script}, Stderr: new(strings.Builder), Grace: time.Minute, LetGo: tt.letGo})
			if err != nil {
				t.Fatal(err)
			}
			if tt.leaves {
				holder, err := os.OpenFile(pipe, os.O_WRONLY, 0)
				if err != nil {
					t.Fatal(err)
				}
				defer holder.Close()
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
			held := strings.Join(p.Held(), ", ")
			for _, word := range tt.want {
				if !strings.Contains(held, word) {
					t.Errorf("%q does not say %q", held, word)
				}
			}
			if len(tt.want) == 0 && held != "" {
				t.Errorf("it says %q", held)
			}
		})
	}
}

// TestGraceIsForItself: a program that exits in time is not killed, nor is its exit told
// any later, for what others do with the standard error that it has left them; which is
// told.
func TestGraceIsForItself(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "setsid sh -c 'exec cat <" + pipe + "' </dev/null >/dev/null & exec cat"
	const grace = 10 * time.Second
	p, err := Start(Options{Argv: []string{"sh", "-c", script}, Stderr: new(Tail), Grace: grace, LetGo: 2 * grace})
	if err != nil {
		t.Fatal(err)
	}
	holder, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	select {
	case <-p.Gone():
	case err := <-closed:
		t.Fatalf("its exit was not seen before its standard error ended: closed with %v", err)
	}
	if !p.ExitedWithin(time.Nanosecond) || p.Err() != nil {
		t.Errorf("it has exited, and that is not told: %v", p.Err())
	}
	holder.Close()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if held := p.Held(); len(held) != 0 {
		t.Errorf("it says %q", held)
	}
}
