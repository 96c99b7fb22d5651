//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// TestEnd: an adapter ends by the end of its input, and the environment with it.
func TestEnd(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	b := playing(t, "plain", log)
	e := open(t, b, Options{})
	if err := errors.Join(e.Shutdown(t.Context()), e.Detach(t.Context())); err != nil {
		t.Fatal(err)
	}
	if l := lines(t, log); l[len(l)-1] != "ended" {
		t.Errorf("it said %q", l)
	}
	b.Provisioned = true
	if _, err := New(Options{}).Open(t.Context(), b, nil); tool.KindOf(err) != tool.EnvironmentLost || tool.HintOf(err) == "" {
		t.Errorf("opened again: %v", err)
	}
}

// TestBadEnd: an exit code says that something could not be cleaned up.
func TestBadEnd(t *testing.T) {
	e := open(t, playing(t, "bad-end"), Options{})
	err := e.Shutdown(t.Context())
	if tool.KindOf(err) != tool.OutcomeUnknown || !strings.Contains(err.Error(), "exit status 5") || !strings.Contains(err.Error(), "vm-17") {
		t.Errorf("ended with %v", err)
	}
}

// TestForce: after its budget an adapter is killed, with its whole tree, and the
// error says what that means.
func TestForce(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	b := playing(t, "stubborn", log)
	b.Profile.ShutdownTimeout = 200 * time.Millisecond
	e := open(t, b, Options{})
	child, err := strconv.Atoi(lines(t, log)[0])
	if err != nil {
		t.Fatal(err)
	}
	err = e.Shutdown(t.Context())
	if tool.KindOf(err) != tool.OutcomeUnknown || !strings.Contains(err.Error(), "200ms") || !strings.Contains(err.Error(), "killed") {
		t.Errorf("ended with %v", err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for syscall.Kill(child, 0) == nil && !zombie(child) {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("its child lives on")
		}
	}
}

func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// TestEndAfterLoss: a shutdown that waited in vain for an adapter which had failed
// before says how that ended, and that alone.
func TestEndAfterLoss(t *testing.T) {
	b := playing(t, "mute")
	b.Profile.ShutdownTimeout = time.Second
	e := open(t, b, Options{})
	if _, err := bash(t, e, "true"); tool.KindOf(err) != tool.OutcomeUnknown {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := e.Shutdown(ctx)
	if tool.KindOf(err) != tool.OutcomeUnknown || tool.HintOf(err) == "" || !strings.Contains(err.Error(), "was killed") || strings.Contains(err.Error(), "connection") {
		t.Errorf("ended with %v (%s)", err, tool.KindOf(err))
	}
}

// TestEndsThoughHeld: an adapter has ended when it has exited, whoever holds the standard
// error that it has left behind.
func TestEndsThoughHeld(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	h := &host{grace: patience, argv: []string{"sh", "-c", "setsid sh -c 'exec cat <" + pipe + "' </dev/null >/dev/null & read line"}}
	s, err := h.start()
	if err != nil {
		t.Fatal(err)
	}
	h.current = s
	holder, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	if _, err := s.Write([]byte("exit\n")); err != nil {
		t.Fatal(err)
	}
	<-s.program.Gone()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.end(ctx); err != nil {
		t.Error(err)
	}
}

// TestDetachIsBounded: whoever lets go does not wait for longer than it can, and an
// adapter that needs longer has its own budget.
func TestDetachIsBounded(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log")
	b := playing(t, "stubborn", log)
	b.Profile.ShutdownTimeout = 2 * time.Second
	e := open(t, b, Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.Detach(ctx); tool.KindOf(err) != tool.Timeout {
		t.Errorf("detached with %v", err)
	}
	// Its end comes all the same.
	s := e.(*environment).host.current
	select {
	case <-s.program.Exited():
	case <-time.After(patience):
		t.Error("it lives on")
	}
}

func TestCheck(t *testing.T) {
	for part, test := range map[string]struct {
		ok   bool
		last string
	}{
		"plain":           {true, "end"},
		"missing-library": {false, "protocol"},
		"garbage":         {false, "protocol"},
		"version":         {false, "protocol"}, // it answers before initialize
	} {
		log := filepath.Join(t.TempDir(), "log")
		h := New(Options{}).Check(t.Context(), playing(t, part, log).Profile)
		if h.OK != test.ok {
			t.Errorf("%s: %+v", part, h)
		}
		for _, c := range h.Checks {
			if c.Detail == "" || !c.OK && c.Hint == "" || !c.OK && c.Name != test.last && c.Name != "end" {
				t.Errorf("%s: %+v", part, c)
			}
		}
		if part == "plain" {
			if l := lines(t, log); strings.Contains(strings.Join(l, " "), "initialize") {
				t.Errorf("the check made an environment: %q", l)
			}
		}
	}
	if h := New(Options{}).Check(t.Context(), profile.Profile{Command: []string{"/no/such/adapter"}}); h.OK || len(h.Checks) != 1 {
		t.Errorf("%+v", h)
	}
}
