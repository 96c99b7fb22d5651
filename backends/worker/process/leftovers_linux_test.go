package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/backends/tool"
)

// helpUnmarked is a worker that runs LINE in MODE, says so when its children are in
// their places, and hangs.
func helpUnmarked() {
	m := helperManager(false)
	p, err := m.Start(context.Background(), tool.StartRequest{
		Command: os.Getenv("LINE") + "> ready; exec sleep 300", PermissionMode: tool.Mode(os.Getenv("MODE")),
	})
	must(err)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for err = os.ErrNotExist; err != nil; <-tick.C {
		_, err = os.Stat(filepath.Join(os.Getenv("ROOT"), "ready"))
	}
	fmt.Println(p.ID, p.PID, m.instance)
	select {}
}

// Who is in a lost process's session ends with it, with no mark too, if something shows
// that it came from there.
func TestLostSession(t *testing.T) {
	const (
		here  = `env -i sh -c '> here; exec sleep 300' & until [ -e here ]; do sleep 0.01; done; `
		there = `env -i sh -c 'cd /; > $OLDPWD/there; exec sleep 300' & until [ -e there ]; do sleep 0.01; done; `
	)
	adopt := func(orphans uintptr) {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, orphans, 0, 0, 0); err != nil {
			t.Error(err)
		}
	}
	adopt(1)
	defer adopt(0)
	for _, row := range []struct {
		name, line    string
		mode          tool.Mode
		members, stay int
	}{
		{"works there", here, tool.Unconfined, 1, 0},
		{"works elsewhere, beside one that works there", here + there, tool.Unconfined, 2, 1},
		{"works elsewhere, and is confined", there, tool.Standard, 1, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := helper(t, "unmarked")
			c.Env = append(c.Env, "LINE="+row.line, "MODE="+string(row.mode))
			id, pid, _, err := killedWorker(c)
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := reap(pid); err != nil { // its number stays with it until then
				t.Fatal(err)
			}
			members := inSession(t, pid)
			if len(members) != row.members {
				t.Errorf("of %d there are %+v", pid, members)
			}
			lost, err := Settle(t.Context(), variable(c, "STATE"), "s1")
			if err != nil || len(lost) != 1 || lost[0].ID != id {
				t.Errorf("settled %+v, %v", lost, err)
			}
			if left := inSession(t, pid); len(left) != row.stay {
				t.Errorf("left: %+v", left)
			}
			for _, p := range members {
				_ = signalExactly(p, syscall.SIGKILL) // those that stay
				if _, _, err := reap(p.pid); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// A session without its first process whose number a record holds is not the record's
// for that alone.
func TestRecycledSession(t *testing.T) {
	dir := t.TempDir()
	for _, row := range []struct {
		name, works string // where somebody else does
		by          string // what starts him, in words
		change      func(*record)
	}{
		{"works elsewhere", t.TempDir(), "", func(*record) {}},
		{"works elsewhere, limited", t.TempDir(), "setpriv --no-new-privs ", func(*record) {}},
		{"works in the root of all", "/", "", func(r *record) { r.CWD = "/" }},
		{"began before", dir, "", func(r *record) { r.Identity.Start++ }},
		{"another boot", dir, "", func(r *record) { r.Identity.Boot = "another" }},
		{"has ended", dir, "", func(r *record) { r.Status = tool.ProcessStopped }},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := exec.Command("/bin/sh", "-c", row.by+"sh -c 'exec sleep 300 >&- 2>&-' & echo $!")
			c.Dir, c.SysProcAttr = row.works, &syscall.SysProcAttr{Setsid: true}
			out, err := c.Output()
			if err != nil {
				t.Fatal(err)
			}
			innocent, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			session := c.Process.Pid
			rec := record{
				Process:  tool.Process{ID: newID(), PID: session, PGID: session, CWD: dir, Status: tool.ProcessRunning, SandboxMode: tool.Unconfined},
				Identity: whoIs(innocent),
			}
			row.change(&rec)
			state := t.TempDir()
			leave(t, state, rec)
			if _, err := Settle(t.Context(), state, "s1"); err != nil {
				t.Error(err)
			}
			if p, err := readProc(strconv.Itoa(innocent)); err != nil || p.zombie || p.session != session {
				t.Errorf("the innocent is %+v, %v", p, err)
			}
			if err := syscall.Kill(innocent, syscall.SIGKILL); err != nil {
				t.Errorf("the innocent: %v", err)
			}
		})
	}
}
