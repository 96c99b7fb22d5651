package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/rpc/protocol"
)

// nobody is an unprivileged user that every system has.
const nobody = 65534

// TestAsRootCleanupError is a local session with a process that cannot be ended:
// nothing of the session is removed until that process is gone.
func TestAsRootCleanupError(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can make a program that becomes root")
	}
	p := newPlace(t, members{"it": localProfile()})
	p.unprivileged()
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Fatal(err)
	}
	become := filepath.Join(p.folder, "become-root")
	copyFile(t, setpriv, become, 0o755)
	if err := os.Chmod(become, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	s := p.serve()
	w := s.open("it", "stuck")
	started, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{
		SessionID: "stuck", Command: "exec ./become-root --reuid=0 --regid=0 --clear-groups sleep 1000", PermissionMode: protocol.ModeUnconfined,
	})
	if err != nil {
		t.Fatal(explain(err))
	}
	pid := started.Process.PID
	p.until("the process to be root's", func() bool {
		var info unix.Stat_t
		name, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
		return err == nil && string(name) == "sleep\n" && unix.Stat("/proc/"+strconv.Itoa(pid), &info) == nil && info.Uid == 0
	})
	// The clean-up of the place must not wait for it, whatever this finds.
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	kept := func(what string) {
		t.Helper()
		if !running(pid) {
			t.Fatalf("%s: the process has ended, and this proves nothing", what)
		}
		for _, file := range []string{"binding.json", "token"} {
			if _, err := os.Stat(filepath.Join(p.state(), "sessions", "stuck", file)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		if got := w.recordsOf("stuck"); !strings.Contains(got, started.Process.ID) {
			t.Errorf("%s: the worker's records hold %q", what, got)
		}
	}
	_, err = w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: "stuck"})
	if err == nil || !strings.Contains(explain(err), strconv.Itoa(pid)) {
		t.Errorf("close says %s", explain(err))
	}
	kept("close")
	_, err = w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck"})
	if err == nil || !strings.Contains(explain(err), strconv.Itoa(pid)) {
		t.Errorf("delete says %s", explain(err))
	}
	kept("delete")
	if got, err := w.SessionGet(w.ctx(), protocol.SessionParams{SessionID: "stuck"}); err != nil || got.Session.State != protocol.SessionFailed || got.Session.Error == nil {
		t.Errorf("the session is %+v, %v", got.Session, explain(err))
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until("the end of the process", func() bool { return !running(pid) })
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "stuck"}); err != nil {
		t.Errorf("delete, afterwards: %s", explain(err))
	}
	if _, err := os.Stat(filepath.Join(p.state(), "sessions", "stuck")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what is left of the session: %v", err)
	}
}

// unprivileged has the place's programs run as nobody, who owns the place.
func (p *place) unprivileged() {
	p.Helper()
	program := filepath.Join(p.home, "caisson")
	copyFile(p.TB, p.program, program, 0o755)
	p.program = program
	p.wrap = []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	for _, dir := range []string{p.home, p.runtime, p.folder, filepath.Dir(p.folder), p.config()} {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			p.Fatal(err)
		}
	}
	// The test's own directory is above both.
	if err := os.Chmod(filepath.Dir(p.home), 0o755); err != nil {
		p.Fatal(err)
	}
}

// recordsOf is what the local worker's journal of a session holds.
func (w *work) recordsOf(session string) string {
	w.Helper()
	var all strings.Builder
	err := filepath.WalkDir(w.state(), func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.Contains(path, session) && !strings.Contains(path, "environments") {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was about to take the place of another
		}
		all.Write(content)
		return err
	})
	if err != nil {
		w.Error(err)
	}
	return all.String()
}

func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
