//go:build linux

package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

func TestStdin(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "cat")
	data := make([]byte, 300_000)
	_, _ = rand.Read(data) // never fails
	if _, err := m.Write(t.Context(), p.ID, data); err != nil {
		t.Fatal(err)
	}
	if more, err := m.InputAvailable(t.Context(), p.ID); err != nil || !more {
		t.Errorf("input available: %v %v", more, err)
	}
	for range 2 {
		if _, err := m.CloseStdin(t.Context(), p.ID); err != nil && !isClosed(m.listed[p.ID].exited) {
			t.Fatal(err)
		}
	}
	if got := all(t, m, p.ID); got != string(data) {
		t.Errorf("%d bytes came back of %d", len(got), len(data))
	}
	wait(t, m, p.ID)
	if _, err := m.Write(t.Context(), p.ID, []byte("x")); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a write after the end: %v", err)
	}
	if more, err := m.InputAvailable(t.Context(), p.ID); err != nil || more {
		t.Errorf("input available after the end: %v %v", more, err)
	}
}

func TestBlockedWrite(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, "sleep 100")
	big := make([]byte, 1<<20)
	ctx, late := context.WithCancelCause(t.Context())
	defer late(nil)
	stdin, err := m.listed[p.ID].stdin.file()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		awaitFull(t, stdin)
		late(context.DeadlineExceeded)
	}()
	_, err = m.Write(ctx, p.ID, big)
	if tool.KindOf(err) != tool.Timeout || !strings.Contains(err.Error(), "took 65536 of 1048576 bytes") {
		t.Errorf("a deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	go func() { _, err := m.Write(ctx, p.ID, big); first <- err }()
	go func() { _, err := m.Write(ctx, p.ID, big); second <- err }()
	cancel()
	for _, c := range []chan error{first, second} {
		if err := <-c; tool.KindOf(err) != tool.Cancelled {
			t.Errorf("a cancelled write: %v", err)
		}
	}
	go func() { _, err := m.Write(context.Background(), p.ID, big); first <- err }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(m.listed[p.ID].stdin.turn) > 0 {
		<-tick.C // until the writer has its turn
	}
	if _, err := m.CloseStdin(t.Context(), p.ID); err != nil {
		t.Error(err)
	}
	if err := <-first; tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a write to an input that was closed: %v", err)
	}
	if _, err := m.Write(t.Context(), p.ID, make([]byte, MaxWriteBytes+1)); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a giant write: %v", err)
	}
}

// awaitFull returns when a pipe takes no more.
func awaitFull(t *testing.T, w *os.File) {
	t.Helper()
	c, err := w.SyscallConn()
	if err != nil {
		t.Error(err)
		return
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline, held := time.Now().Add(patience), 0; held < 1<<16; <-tick.C {
		var failed error
		err := c.Control(func(fd uintptr) { held, failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ) })
		if err = errors.Join(err, failed); err != nil || time.Now().After(deadline) {
			t.Errorf("the pipe holds %d bytes, %v", held, err)
			return
		}
	}
}

func TestTerminal(t *testing.T) {
	m, r := newTest(t)
	p := startRequest(t, m, tool.StartRequest{Command: `stty size; echo $TERM; tty; read line; echo "got $line"; cat; echo end`, TTY: &tool.TTY{Cols: 132, Rows: 43}})
	see(t, m, p.ID, "43 132\r\nxterm-256color\r\n/dev/pts/")
	if _, err := m.Write(t.Context(), p.ID, []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	see(t, m, p.ID, "got hello")
	if _, err := m.CloseStdin(t.Context(), p.ID); err != nil {
		t.Fatal(err)
	}
	see(t, m, p.ID, "end\r\n")
	if got := wait(t, m, p.ID); got.ExitCode != 0 {
		t.Errorf("ended as %+v", got)
	}
	r.until(t, p.ID, outputClosed)
}

// An interrupt of a terminal is its foreground job's, and what was typed before it is not
// run by the shell.
func TestInterruptOfTerminal(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{
		Argv: []string{"/bin/bash", "-c", `set -m; echo ready; sh -c 'trap "exit 9" INT; echo begun; while :; do sleep 0.02; done'; echo "after $?"; read -r x; echo "got $x"`},
		TTY:  &tool.TTY{},
	})
	see(t, m, p.ID, "begun")
	if _, err := m.Write(t.Context(), p.ID, []byte("rm -rf x\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Signal(t.Context(), p.ID, "SIGINT"); err != nil {
		t.Fatal(err)
	}
	see(t, m, p.ID, "after 9")
	if _, err := m.Write(t.Context(), p.ID, []byte("typed\n")); err != nil {
		t.Fatal(err)
	}
	if got := all(t, m, p.ID); !strings.HasSuffix(got, "got typed\r\n") {
		t.Errorf("output is %q", got)
	}
}

// The terminal controls the session from the first instruction; bash would
// take it by itself.
func TestControllingTerminal(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{Argv: []string{"/bin/sh", "-c", ": < /dev/tty && echo yes"}, TTY: &tool.TTY{}})
	if got := all(t, m, p.ID); got != "yes\r\n" {
		t.Errorf("output is %q", got)
	}
}

func TestResize(t *testing.T) {
	m, r := newTest(t)
	p := startRequest(t, m, tool.StartRequest{
		Command: `trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done`, TTY: &tool.TTY{},
	})
	if *p.TTY != defaultTTY {
		t.Errorf("the default size is %v", *p.TTY)
	}
	see(t, m, p.ID, "ready")
	got, err := m.Resize(t.Context(), p.ID, tool.TTY{Cols: 99, Rows: 55})
	if err != nil || got.TTY.Cols != 99 {
		t.Fatalf("resized: %+v, %v", got, err)
	}
	see(t, m, p.ID, "55 99")
	r.until(t, p.ID, ofType(tool.EventUpdated))
	if _, err := m.Resize(t.Context(), p.ID, tool.TTY{}); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("no size: %v", err)
	}
	plain := start(t, m, "sleep 100")
	if _, err := m.Resize(t.Context(), plain.ID, tool.TTY{Cols: 1, Rows: 1}); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("no terminal: %v", err)
	}
}

// A resize right after the start is what the process sees.
func TestResizeBeforeReady(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{Command: `read x; stty size`, TTY: &tool.TTY{Cols: 10, Rows: 10}})
	if _, err := m.Resize(t.Context(), p.ID, tool.TTY{Cols: 77, Rows: 7}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Write(t.Context(), p.ID, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	see(t, m, p.ID, "7 77")
}

// No command gets a descriptor beside its own three, not even one that this
// program inherited without the close-on-exec flag.
func TestDescriptors(t *testing.T) {
	open, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	m, _ := newTest(t)
	list := []string{"/bin/ls", "-1", "/proc/self/fd"}
	const want = "0\n1\n2\n3\n" // the last one is of the directory that ls reads
	for _, mode := range []tool.Mode{tool.Unconfined, tool.Standard, tool.ReadOnly} {
		r, err := m.Run(t.Context(), Command{Argv: list, Mode: mode})
		if err != nil || string(r.Stdout) != want {
			t.Errorf("%s foreground: %q %v", mode, r.Stdout, err)
		}
		p := startRequest(t, m, tool.StartRequest{Argv: list, PermissionMode: mode})
		if got := all(t, m, p.ID); got != want {
			t.Errorf("%s background: %q", mode, got)
		}
	}
	p := startRequest(t, m, tool.StartRequest{Argv: list, TTY: &tool.TTY{Cols: 5, Rows: 5}})
	if got := all(t, m, p.ID); strings.Join(strings.Fields(got), " ") != "0 1 2 3" {
		t.Errorf("terminal: %q", got)
	}
}

func TestForegroundStdin(t *testing.T) {
	m, _ := newTest(t)
	r, err := m.Run(t.Context(), Command{Command: "cat; readlink /proc/self/fd/0"})
	if err != nil || string(r.Stdout) != "/dev/null\n" {
		t.Errorf("without input: %q %v", r.Stdout, err)
	}
	data := bytes.Repeat([]byte("0123456789"), 50_000)
	r, err = m.Run(t.Context(), Command{Command: "cat", Stdin: data})
	if err != nil || !bytes.Equal(r.Stdout, data) {
		t.Errorf("with input: %d bytes, %v", len(r.Stdout), err)
	}
	if r, err = m.Run(t.Context(), Command{Command: "exit 4", Stdin: data}); err != nil || r.ExitCode != 4 {
		t.Errorf("with input that nobody reads: %+v %v", r, err)
	}
}
