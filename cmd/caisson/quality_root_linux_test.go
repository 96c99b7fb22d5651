package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// TestAsRootQuality is what of [TestQuality] needs root: file systems and a
// process namespace of its own.
func TestAsRootQuality(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can mount file systems and choose pids")
	}
	t.Run("FullWorkspace", testFullWorkspace)
	t.Run("FullState", testFullState)
	t.Run("FullStateOfCommands", testFullStateOfCommands)
	t.Run("FullDiskOfJobs", testFullDiskOfJobs)
	t.Run("ReadOnlyState", testReadOnlyFileSystem)
	t.Run("RecycledPid", testRecycledPid)
	t.Run("HiddenProcesses", testHiddenProcesses)
}

// mount puts a small file system at dir for as long as there is the place.
func (p *place) mount(dir, size string) {
	p.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		p.Fatalf("mount a small file system: %v", err)
	}
	p.undo = append(p.undo, func() error { return unix.Unmount(dir, unix.MNT_DETACH) })
}

// A full disk is named, and the file holds what it held.
func testFullWorkspace(t *testing.T) {
	p := newPlace(t, members{})
	p.mount(p.folder, "512k")
	w := p.serve().open("", "")
	w.call("write_file", members{"path": "f", "content": "old"})
	big := strings.Repeat("x", 1<<20)
	for _, args := range []members{{"path": "f", "content": big}, {"path": "dir/new", "content": big}} {
		if r, err := w.try("write_file", args); err != nil || !r.IsError || !strings.Contains(r.Content[0].Text, "space is left") {
			t.Errorf("%s: %+v, %v", args["path"], r, explain(err))
		}
	}
	if r, err := w.try("edit_file", members{"path": "f", "old_text": "old", "new_text": big}); err != nil || !r.IsError {
		t.Errorf("edit: %+v, %v", r, explain(err))
	}
	_, err := w.FileWrite(w.ctx(), protocol.FileWriteParams{SessionID: w.session.ID, Path: "f", Data: []byte(big)})
	if err == nil || !strings.Contains(err.Error(), "space is left") {
		t.Errorf("fs/writeFile: %v", explain(err))
	}
	// Half a file would have filled the disk.
	if got := w.sh("cat f; find . -type f"); got != "old./f\n" {
		t.Errorf("the workspace holds %q", got)
	}
	w.call("write_file", members{"path": "f", "content": "new"})
}

// With no room for state no session begins; nothing of it is there, and the ones
// that exist work on.
func testFullState(t *testing.T) {
	p := newPlace(t, members{})
	p.mount(filepath.Dir(p.state()), "1m")
	s := p.serve()
	w := s.open("", "first")
	w.sh("true")
	filler := filepath.Join(filepath.Dir(p.state()), "filler")
	if err := fill(filler); err != nil {
		t.Fatal(err)
	}
	_, err := s.tryOpen("", "second")
	if err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("it says %v", explain(err))
	}
	if r, err := w.try("read_file", members{"path": "nothing"}); err != nil || !r.IsError {
		t.Errorf("the session that exists: %v", explain(err))
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	list, err := s.SessionList(s.ctx(), protocol.SessionListParams{})
	if err != nil || len(list.Sessions) != 1 {
		t.Errorf("there are %+v, %v", list.Sessions, explain(err))
	}
	s.open("", "second").sh("true")
}

// With no room for a local worker's state, commands say so, and where, and what
// to do; what needs no room works, and the session can be ended to make some.
func testFullStateOfCommands(t *testing.T) {
	p := newPlace(t, members{})
	disk := filepath.Dir(p.state())
	p.mount(disk, "1m")
	s := p.serve()
	full := func(what string, err error) {
		t.Helper()
		e := answerOf(err)
		if e == nil || !strings.Contains(e.Message, "no space is left on the disk of "+disk) || !strings.Contains(e.Data.Hint, "make room") ||
			!strings.HasPrefix(e.Data.Path, disk) || strings.Contains(e.Message, "another process") {
			t.Errorf("%s: %v", what, explain(err))
		}
	}
	filler := filepath.Join(disk, "filler")
	set := func(f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatal(err)
		}
	}
	start := func(w *work) error {
		_, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: w.session.ID, Command: "sleep 1000"})
		return err
	}

	// No worker has been started.
	w := s.open("", "first")
	set(func() error { return fill(filler) })
	for range 2 {
		_, err := w.try("bash", members{"command": "true"})
		full("bash", err)
		full("a process", start(w))
	}
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "first"}); err != nil {
		t.Errorf("delete: %v", explain(err))
	}
	set(func() error { return os.Remove(filler) })

	// One runs.
	w = s.open("", "second")
	w.sh("echo x > a")
	set(func() error { return fill(filler) })
	if got := w.sh("echo yes"); got != "yes\n" {
		t.Errorf("a command prints %q", got)
	}
	full("a process", start(w))
	_, err := w.ArtifactPublish(w.ctx(), protocol.ArtifactPublishParams{SessionID: "second", Path: "a"})
	full("a snapshot", err)
	_, err = w.try("present_artifact", members{"path": "a"})
	full("a snapshot", err)
	// It has died.
	if err := syscall.Kill(p.worker(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until("the worker's end", func() bool { return len(p.workers()) == 0 })
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "second"}); err != nil {
		t.Errorf("delete: %v", explain(err))
	}
	set(func() error { return os.Remove(filler) })

	// It has died, and what it ran is more than there is room to say the end of.
	const many = 20
	for id, end := range map[string]func(w *work, id string) error{
		"third": func(w *work, id string) error {
			_, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: id})
			return err
		},
		"fourth": func(w *work, id string) error {
			_, err := w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: id})
			return err
		},
	} {
		w := s.open("", id)
		pids := make([]int, many)
		for i := range pids {
			pids[i] = w.background("exec sleep 1000").PID
		}
		set(func() error { return fill(filler) })
		worker := p.worker()
		if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.until("the worker's end", func() bool { return !running(worker) })
		if err := end(w, id); err != nil {
			t.Errorf("the end of the %s: %v", id, explain(err))
		}
		for _, pid := range pids {
			if running(pid) {
				t.Errorf("the process %d of the %s runs on", pid, id)
			}
		}
		set(func() error { return os.Remove(filler) })
	}
	s.open("", "fifth").sh("true")
}

// fill writes a file until nothing more fits.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !isFull(err) {
			return err
		}
		err = nil
	}
	return nil
}

func isFull(err error) bool { return strings.Contains(err.Error(), unix.ENOSPC.Error()) }

func testReadOnlyFileSystem(t *testing.T) {
	p := newPlace(t, members{})
	dir := filepath.Dir(p.state())
	p.mount(dir, "1m")
	before := p.serve()
	before.open("", "first")
	if err := before.Close(); err != nil { // whose files would keep it writable
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s := p.start(client.Options{})
	_, err := s.Initialize(s.ctx(), protocol.InitializeParams{})
	if err == nil {
		_, err = s.tryOpen("", "second")
	}
	if err == nil || !strings.Contains(err.Error(), "read-only file system") {
		t.Errorf("it says %v", explain(err))
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT, ""); err != nil {
		t.Fatal(err)
	}
	p.serve().open("", "second").sh("true")
}

// insideNamespace is set for the part of testRecycledPid that is the first
// process of its namespace.
const insideNamespace = "CAISSON_TEST_INSIDE_NAMESPACE"

// A pid that belongs to somebody else by now is a lost process, and nobody
// signals it.
func testRecycledPid(t *testing.T) {
	if os.Getenv(insideNamespace) != "" {
		recyclePid(t)
		return
	}
	inNamespace(t, "RecycledPid")
}

// inNamespace runs a row again, as the first process of a pid namespace.
func inNamespace(t *testing.T, row string) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestAsRootQuality$/^"+row+"$", "-test.v")
	cmd.Env = append(os.Environ(), insideNamespace+"=1", testProgram+"="+filepath.Join(programDir, "caisson"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestAsRootQuality/"+row) {
		t.Errorf("%v\n%s", err, out)
	}
}

// mountProc mounts the /proc of the namespace.
func mountProc(t *testing.T, options string) {
	t.Helper()
	for _, m := range []struct {
		source, target, kind, options string
		flags                         uintptr
	}{{"", "/", "", "", unix.MS_REC | unix.MS_PRIVATE}, {"proc", "/proc", "proc", options, 0}} {
		if err := unix.Mount(m.source, m.target, m.kind, m.flags, m.options); err != nil {
			t.Fatal(err)
		}
	}
}

// Where /proc shows a user no processes but their own, commands run as elsewhere, and
// still cannot reach their worker.
func testHiddenProcesses(t *testing.T) {
	if os.Getenv(insideNamespace) == "" {
		inNamespace(t, "HiddenProcesses")
		return
	}
	mountProc(t, "hidepid=2")
	p := newPlace(t, members{})
	p.unprivileged()
	w := p.serve(func(_ *client.Options, i *protocol.InitializeParams) {
		i.ProcessID = nil // we are another user's, and hidden too
	}).open("", "hidden")
	if got := w.sh("test -e /proc/1 || echo hidden"); got != "hidden\n" {
		t.Errorf("the first process is %q", got)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", w.worker()))
	if err != nil {
		t.Fatal(err)
	}
	args := slices.DeleteFunc(strings.Split(string(line), "\x00"), func(a string) bool {
		return !strings.HasPrefix(a, "--") || strings.HasPrefix(a, "--ready-fd")
	})
	reach := "coproc { " + p.program + " attach " + strings.Join(args, " ") + ` 2>&1; }
		echo '{"id":"1","method":"process/list"}' >&${COPROC[1]}; read -t 10 -r answer <&${COPROC[0]}; echo "answer $answer"`
	allowed, err := exec.Command(p.wrap[0], append(p.wrap[1:], "bash", "-c", reach)...).CombinedOutput()
	if err != nil || !strings.Contains(string(allowed), "token is missing") {
		t.Errorf("whoever may connect gets %q, %v", allowed, err)
	}
	if got := w.bash(reach); strings.Contains(got.Stdout, "token") || !strings.HasPrefix(got.Stdout, "answer ") {
		t.Errorf("a command of the session gets %+v", got)
	}
	started := w.background("setsid sleep 1000 & trap '' TERM; sleep 1000")
	if _, err := w.ProcessStop(w.ctx(), w.named(started.ID)); err != nil {
		t.Error(explain(err))
	}
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "hidden"}); err != nil {
		t.Error(explain(err))
	}
}

func recyclePid(t *testing.T) {
	mountProc(t, "")
	p := newPlace(t, members{})
	s := p.serve()
	w := s.open("", "recycled")
	started := w.background("exec sleep 1000")
	began := startTick(p, started.PID)
	worker := p.worker()
	s.kill()
	if err := syscall.Kill(worker, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// We are everybody's last parent here.
	for _, pid := range []int{worker, started.PID} {
		p.until("the end of "+strconv.Itoa(pid), func() bool {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // it may not be ours yet
			return syscall.Kill(pid, 0) != nil
		})
	}
	innocent := takePid(p, started.PID, began)

	w = p.serve().open("", "recycled")
	if got := w.process(started.ID); got.Status != protocol.ProcessLost {
		t.Errorf("the process is %+v", got)
	}
	// It may be refused or do nothing.
	_, _ = w.ProcessStop(w.ctx(), w.named(started.ID))
	_, _ = w.ProcessSignal(w.ctx(), protocol.ProcessSignalParams{SessionID: "recycled", ProcessID: started.ID, Signal: "SIGKILL"})
	w.sh("true")
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "recycled"}); err != nil {
		t.Error(explain(err))
	}
	if !running(innocent.Process.Pid) {
		t.Error("the innocent process is dead")
	}
	if err := innocent.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = innocent.Wait() // it was killed
}

// startTick is when the process began, in ticks of the kernel's clock (field 22
// of /proc/PID/stat).
func startTick(p *place, pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		p.Fatal(err)
	}
	// The name in parentheses may hold anything; what follows it begins with field 3.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[22-3]
}

// takePid starts a process with this pid, in another tick of the clock than
// the one that it is not to be taken for: nothing tells them apart otherwise.
func takePid(p *place, pid int, began string) *exec.Cmd {
	var taken *exec.Cmd
	p.until("the pid "+strconv.Itoa(pid), func() bool {
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0o600); err != nil {
			p.Fatal(err)
		}
		taken = exec.Command("sleep", "1000")
		if err := taken.Start(); err != nil {
			p.Fatal(err)
		}
		if taken.Process.Pid == pid && startTick(p, pid) != began {
			return true
		}
		// A thread was quicker, or it is too early.
		_ = taken.Process.Kill()
		_ = taken.Wait()
		return false
	})
	return taken
}
