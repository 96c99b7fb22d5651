//go:build linux

package process

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// untilSignalled waits in bash for a signal, forking nothing while one may come.
const untilSignalled = `sleep 1000 & trap "kill $!; exit 9" INT QUIT; echo ready; wait`

// What has left its terminal, which is closed then, gets the signal all the same.
func TestInterruptWithoutTerminal(t *testing.T) {
	for _, signal := range []string{"SIGINT", "SIGQUIT"} {
		t.Run(signal, func(t *testing.T) {
			m, r := newTest(t)
			p := startRequest(t, m, tool.StartRequest{
				Argv: []string{"/bin/bash", "-c", `trap "" HUP; exec </dev/null >log 2>&1; ` + untilSignalled},
				TTY:  &tool.TTY{},
			})
			r.until(t, p.ID, outputClosed)
			if _, err := m.Signal(t.Context(), p.ID, "^C"); tool.KindOf(err) != tool.Unsupported {
				t.Errorf("a key of a terminal that is closed: %v", err)
			}
			if _, err := m.Signal(t.Context(), p.ID, signal); err != nil {
				t.Fatal(err)
			}
			if got := wait(t, m, p.ID); got.ExitCode != 9 {
				t.Errorf("ended as %+v", got)
			}
		})
	}
}

// A signal is one however the terminal is set up; a key is what the terminal makes of it.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, setup, signal string
		kind                tool.Kind
	}{
		{name: "signal", setup: "-isig", signal: "SIGINT"},
		{name: "interrupt", setup: "isig", signal: "^C"},
		{name: "quit", setup: "isig", signal: `^\`},
		{name: "another key", setup: "intr ^G", signal: "^G"},
		{name: "no signal", setup: "-isig", signal: "^C", kind: tool.Unsupported},
		{name: "no signal any more", setup: "intr ^G", signal: "^C", kind: tool.Unsupported},
		{name: "turned off", setup: "intr undef", signal: "^@", kind: tool.Unsupported},
		{name: "no key", setup: "isig", signal: "^c", kind: tool.InvalidParams},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _ := newTest(t)
			p := startRequest(t, m, tool.StartRequest{
				Argv: []string{"/bin/bash", "-c", "stty " + c.setup + "; " + untilSignalled}, TTY: &tool.TTY{},
			})
			see(t, m, p.ID, "ready")
			_, err := m.Signal(t.Context(), p.ID, c.signal)
			if (err != nil) != (c.kind != "") || err != nil && tool.KindOf(err) != c.kind {
				t.Errorf("%s: %v", c.signal, err)
			}
			if err != nil {
				if _, err := m.Signal(t.Context(), p.ID, "SIGINT"); err != nil {
					t.Error(err)
				}
			}
			if got := wait(t, m, p.ID); got.ExitCode != 9 {
				t.Errorf("ended as %+v", got)
			}
		})
	}
	m, _ := newTest(t)
	if _, err := m.Signal(t.Context(), start(t, m, "sleep 100").ID, "^C"); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a key of no terminal: %v", err)
	}
}

// Where a key is no signal nothing is dropped: it is read behind what was typed.
func TestKeyThatIsRead(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{
		Argv: []string{"/bin/bash", "-c", "stty -isig -icanon -echo; echo ready; head -c 4 | od -An -tx1"},
		TTY:  &tool.TTY{},
	})
	see(t, m, p.ID, "ready")
	if _, err := m.Write(t.Context(), p.ID, []byte("ab")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Signal(t.Context(), p.ID, "^C"); tool.KindOf(err) != tool.Unsupported {
		t.Fatal(err)
	}
	if _, err := m.Write(t.Context(), p.ID, []byte("\x03d")); err != nil {
		t.Fatal(err)
	}
	if got := all(t, m, p.ID); !strings.HasSuffix(got, " 61 62 03 64\r\n") {
		t.Errorf("output is %q", got)
	}
}

// A terminal of a system that does not send signals on request is as good as none: here
// a pipe, of which nobody can ask that.
func TestInterruptUnknownToTerminal(t *testing.T) {
	m, _ := newTest(t)
	p := start(t, m, untilSignalled)
	see(t, m, p.ID, "ready")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if err := signalJob(w, p.PID, unix.SIGINT); err != nil {
		t.Error(err)
	}
	if got := wait(t, m, p.ID); got.ExitCode != 9 {
		t.Errorf("ended as %+v", got)
	}
}

// To ask whether there is input takes nothing back of what ends a write.
func TestInputAvailableUnderWrite(t *testing.T) {
	m, _ := newTest(t)
	p := startRequest(t, m, tool.StartRequest{Argv: []string{"sleep", "300"}, TTY: &tool.TTY{}})
	term := m.listed[p.ID].stdin.w
	if err := term.SetWriteDeadline(time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	if open, err := m.InputAvailable(t.Context(), p.ID); err != nil || !open {
		t.Errorf("available: %v, %v", open, err)
	}
	if _, err := term.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the write ends with %v", err)
	}
}

// A write that is held up is given up with what was typed: no shell gets the rest of it.
func TestInterruptOvertakesWrite(t *testing.T) {
	for _, signal := range []string{"^C", "SIGINT"} {
		t.Run(signal, func(t *testing.T) {
			m, _ := newTest(t)
			p := startRequest(t, m, tool.StartRequest{
				Argv: []string{"/bin/bash", "-c", `stty -echo; set -m; bash -c '` + untilSignalled + `'; echo "after $?"; read -r x; echo "got $x"`},
				TTY:  &tool.TTY{},
			})
			see(t, m, p.ID, "ready")
			stdin := m.listed[p.ID].stdin
			var written [2]error
			done := make(chan struct{}, len(written))
			for i := range written { // one of them waits for its turn
				go func() {
					_, written[i] = m.Write(t.Context(), p.ID, bytes.Repeat([]byte("rm -rf x\n"), 30_000))
					done <- struct{}{}
				}()
			}
			tick := time.NewTicker(time.Millisecond)
			defer tick.Stop()
			for begun := 0; begun < len(written); <-tick.C {
				stdin.mu.Lock()
				begun = len(stdin.under)
				stdin.mu.Unlock()
			}
			if _, err := m.Signal(t.Context(), p.ID, signal); err != nil {
				t.Fatal(err)
			}
			for range written {
				<-done
			}
			for _, err := range written {
				if tool.KindOf(err) != tool.InvalidParams || !strings.Contains(err.Error(), "an interrupt overtook it") {
					t.Errorf("the write: %v", err)
				}
			}
			see(t, m, p.ID, "after 9")
			if _, err := m.Write(t.Context(), p.ID, []byte("typed\n")); err != nil {
				t.Fatal(err)
			}
			if got := all(t, m, p.ID); !strings.HasSuffix(got, "got typed\r\n") {
				t.Errorf("output is %q", got)
			}
		})
	}
}
