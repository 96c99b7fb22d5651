package rlimit

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain is "caisson limit" when the first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Command {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// run runs a program within limits.
func run(t *testing.T, l Limits, path string, argv ...string) (stdout, stderr string, err error) {
	t.Helper()
	self, args, err := l.Wrap(path, argv)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args, cmd.Env = args, append(os.Environ(), "GIVEN=as given")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// TestLimits: the program has its limits from the first instruction on, its own
// name and arguments, and everything else that it would have.
func TestLimits(t *testing.T) {
	const show = `ulimit -St; ulimit -Ht; ulimit -Sd; ulimit -Sc; ulimit -n; echo "$0|$1|$2|$GIVEN"`
	sh := []string{"sh", "-c", show, "its name", "--memory=1", ""}
	plain, _, err := run(t, Limits{Memory: 1 << 40}, "/bin/sh", sh...)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.Split(plain, "\n")
	for _, c := range []struct {
		limits Limits
		want   []string
	}{
		{Limits{CPUTime: 1500 * time.Millisecond, Memory: 64 << 20}, []string{"2", "3", "65536", "0"}},
		{Limits{CPUTime: time.Nanosecond}, []string{"1", "2", "unlimited", "0"}},
		{Limits{Memory: 100 << 20}, []string{was[0], was[1], "102400", was[3]}},
	} {
		got, _, err := run(t, c.limits, "/bin/sh", sh...)
		want := strings.Join(append(c.want, was[4], "its name|--memory=1||as given", ""), "\n")
		if err != nil || got != want {
			t.Errorf("%+v: %q, %v; want %q", c.limits, got, err, want)
		}
	}
	// This process is as it was.
	var own unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CPU, &own); err != nil || own.Cur < 1000 {
		t.Errorf("this process may use %v s of the processor, %v", own.Cur, err)
	}
}

// TestLimitsHold: what goes beyond them is ended, or refused.
func TestLimitsHold(t *testing.T) {
	_, _, err := run(t, Limits{CPUTime: time.Second}, "/bin/sh", "sh", "-c", "while :; do :; done")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(interface{ Signal() unix.Signal }).Signal() != unix.SIGXCPU {
		t.Errorf("without time on the processor: %v", err)
	}
	grow := "x=xxxxxxxxxxxxxxxx; while [ ${#x} -lt 60000000 ]; do x=$x$x; done; echo grown"
	if got, _, err := run(t, Limits{Memory: 32 << 20}, "/bin/sh", "sh", "-c", grow); err == nil || got != "" {
		t.Errorf("without memory: %q, %v", got, err)
	}
	if got, _, err := run(t, Limits{Memory: 4 << 30}, "/bin/sh", "sh", "-c", grow); err != nil || got != "grown\n" {
		t.Errorf("with memory: %q, %v", got, err)
	}
}

// TestNoHigher: nobody gets more than there was.
func TestNoHigher(t *testing.T) {
	self, args, err := Limits{Memory: 128 << 30, CPUTime: time.Hour}.Wrap("/bin/sh", []string{"sh", "-c", "ulimit -Hd; ulimit -Ht"})
	if err != nil {
		t.Fatal(err)
	}
	self, args, err = Limits{Memory: 64 << 30, CPUTime: time.Minute}.Wrap(self, args)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Args = args
	if got, err := cmd.Output(); err != nil || string(got) != "67108864\n61\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestNoProgram: what cannot be started is told as shells tell it.
func TestNoProgram(t *testing.T) {
	_, said, err := run(t, Limits{Memory: 1 << 30}, "/nowhere/program", "program")
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || !strings.Contains(said, "/nowhere/program") {
		t.Errorf("%v, %q", err, said)
	}
	for _, args := range [][]string{nil, {"--"}, {"--", "path"}, {"--memory=x", "--", "p", "n"}, {"--cpu-time=-1s", "--", "p", "n"}} {
		var said bytes.Buffer
		if code := main(args, &said); code != exitUsage || said.Len() == 0 {
			t.Errorf("%q: exit code %d, %q", args, code, said.String())
		}
	}
	var help bytes.Buffer
	if code := main([]string{"-h"}, &help); code != 0 || !strings.Contains(help.String(), "-memory") {
		t.Errorf("-h: %d, %q", code, help.String())
	}
}
