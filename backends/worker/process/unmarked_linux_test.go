package process

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// What a command starts without its mark, in its group: one that is deaf, and one that
// is another process at each look. The first thing they do is to name the leader.
const (
	deaf     = `env -i /bin/sh -c 'trap "" TERM; ` + nameLeader + `while :; do sleep 300; done' & `
	fleeting = `env -i /bin/sh -c 'f() { f & exit; }; trap "" TERM; ` + nameLeader + `f' & `

	nameLeader = `echo $PPID > it.tmp; mv it.tmp it; `
)

// inSession are the living members of the session that the process has begun.
func inSession(t *testing.T, leader int) (members []procInfo) {
	t.Helper()
	procs, err := scan()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range procs {
		if p.session == leader && !p.zombie {
			members = append(members, p)
		}
	}
	return members
}

// Who has cleared its environment is known by its group, also when the leader ends at
// once, which is what it does at SIGTERM.
func TestUnmarked(t *testing.T) {
	background := func(t *testing.T, m *Manager, line string) string {
		return startRequest(t, m, tool.StartRequest{Command: line + "exec sleep 300"}).ID
	}
	foreground := func(t *testing.T, m *Manager, line string, alone bool) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			defer cancel()
			number(t, filepath.Join(m.o.Root, "it"))
		}()
		_, err := m.Run(ctx, Command{Command: line + "exec sleep 300", Alone: alone})
		if tool.KindOf(err) != tool.Cancelled {
			t.Error(err)
		}
	}
	for name, end := range map[string]func(t *testing.T, m *Manager, line string){
		"stop": func(t *testing.T, m *Manager, line string) {
			id := background(t, m, line)
			number(t, filepath.Join(m.o.Root, "it"))
			if p, err := m.Stop(t.Context(), id); err != nil || p.Signal != "SIGTERM" {
				t.Errorf("%+v, %v", p, err)
			}
		},
		"close": func(t *testing.T, m *Manager, line string) {
			background(t, m, line)
			number(t, filepath.Join(m.o.Root, "it"))
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"cancel":       func(t *testing.T, m *Manager, line string) { foreground(t, m, line, false) },
		"cancel alone": func(t *testing.T, m *Manager, line string) { foreground(t, m, line, true) },
		"end alone": func(t *testing.T, m *Manager, line string) {
			r, err := m.Run(t.Context(), Command{Command: line + "until [ -e it ]; do sleep 0.01; done; exit 3", Alone: true})
			if err != nil || r.ExitCode != 3 {
				t.Errorf("%+v, %v", r, err)
			}
		},
	} {
		for child, line := range map[string]string{"deaf": deaf, "fleeting": fleeting} {
			t.Run(name+" "+child, func(t *testing.T) {
				m, _ := newTest(t)
				m.termGrace = 100 * time.Millisecond
				end(t, m, "exec >/dev/null 2>&1; "+line)
				leader := number(t, filepath.Join(m.o.Root, "it"))
				for _, p := range inSession(t, leader) { // it may be dying
					awaitDeath(t, p.pid)
				}
				if left := inSession(t, leader); len(left) != 0 {
					t.Errorf("left: %+v", left)
				}
				_ = unix.Kill(-leader, unix.SIGKILL) // nobody is there
			})
		}
	}
}

// number waits for the file, and returns the number in it.
func number(t *testing.T, file string) int {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		text, err := os.ReadFile(file)
		if err == nil {
			n, err := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil {
				t.Error(err)
			}
			return n
		}
		if time.Now().After(deadline) {
			t.Errorf("nobody writes %s: %v", file, err)
			return 0
		}
	}
}
