package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// counting prints every number in turn.
const counting = `i=0; while :; do echo $i; i=$((i+1)); [ $((i % 100)) = 0 ] && sleep 0.01; done`

// A killed service takes nothing along: the next one finds the process, and the
// output goes on at the byte.
func testServiceKilled(t *testing.T, profile members) {
	p := newPlace(t, members{"it": profile})
	w := p.serve().open("it", "killed")
	started := w.background(counting)
	offset, text := int64(0), ""
	more := func(w *work, lines int) {
		t.Helper()
		p.until("more output", func() bool {
			r := w.read(started.ID, offset, "")
			if r.StartOffset != offset {
				t.Fatalf("asked for %d, got %d", offset, r.StartOffset)
			}
			offset, text = r.EndOffset, text+r.Data
			return strings.Count(text, "\n") >= lines
		})
	}
	more(w, 500)
	w.service.kill()
	w = p.serve().open("it", "killed")
	if got := w.process(started.ID); got.Status != protocol.ProcessRunning || got.PID != started.PID {
		t.Fatalf("the process is %+v", got)
	}
	more(w, strings.Count(text, "\n")+2000)
	for i, line := range strings.Split(text[:strings.LastIndexByte(text, '\n')], "\n") {
		if line != strconv.Itoa(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
}

// inFlight runs a command that goes on for ever with more, and returns what its call
// ends with once it has begun.
func inFlight(w *work, more string) <-chan error {
	w.Helper()
	result := make(chan error, 1)
	go func() {
		_, err := w.try("bash", members{"command": "echo once >> log; " + more + "touch begun; exec sleep 1000"})
		result <- err
	}()
	w.until("the command's beginning", func() bool {
		_, err := w.FileStat(w.ctx(), protocol.FileParams{SessionID: w.session.ID, Path: "begun"})
		return err == nil
	})
	return result
}

// A killed worker's calls have an unknown outcome and are not repeated; its
// processes are lost and dead; the next call works where the files are.
func testWorkerKilled(t *testing.T, profile members) {
	w := newPlace(t, members{"it": profile}).serve().open("it", "worker")
	// The kernel ends what the worker has started itself, and not what that started, of
	// which some have cleared their environment.
	started := w.background("sleep 1000 & echo $!; env -i sleep 1000 & echo $!; exec sleep 1000")
	var lines string
	w.until("the pids of its children", func() bool {
		lines = w.read(started.ID, 0, "").Data
		return strings.Count(lines, "\n") == 2
	})
	var plain, cleared int
	if _, err := fmt.Sscan(lines, &plain, &cleared); err != nil {
		t.Fatal(err)
	}
	failed := inFlight(w, "")
	w.killWorker()
	if e := w.kind(protocol.KindOutcomeUnknown, "the call in flight", <-failed); !e.Data.OutcomeUnknown {
		t.Errorf("its data is %+v", e.Data)
	}
	if got := w.sh("cat log"); got != "once\n" {
		t.Errorf("the log holds %q", got)
	}
	if got := w.process(started.ID); got.Status != protocol.ProcessLost {
		t.Errorf("the process is %+v", got)
	}
	w.until("the end of the lost process and its children", func() bool {
		return !w.alive(started.PID) && !w.alive(plain) && !w.alive(cleared)
	})
}

// What a killed worker's call in flight has started ends, though nobody calls again.
func testWorkerKilledUnderCall(t *testing.T, profile members) {
	w := newPlace(t, members{"it": profile}).serve().open("it", "call")
	failed := inFlight(w, "sleep 1000 & echo $! > child; ")
	file, err := w.FileRead(w.ctx(), protocol.FileReadParams{SessionID: w.session.ID, Path: "child"})
	if err != nil {
		t.Fatal(explain(err))
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(file.Data)))
	if err != nil || !w.alive(child) {
		t.Fatalf("the child %d, %v", child, err)
	}
	w.killWorker()
	w.kind(protocol.KindOutcomeUnknown, "the call in flight", <-failed)
	w.until("the child's end", func() bool { return !w.alive(child) })
}

// A cut stream is no ended one: the call in flight has an unknown outcome, is
// not repeated, and the next one connects again to the same worker.
func testConnectionCut(t *testing.T, profile members) {
	// A socket that both share has nothing on its way that could be cut.
	w := newPlace(t, members{"it": profile}).withoutSocket().serve().open("it", "cut")
	started := w.background("exec sleep 1000")
	failed := inFlight(w, "")
	if w.cut() == 0 {
		t.Fatal("there is no connection to cut")
	}
	w.kind(protocol.KindOutcomeUnknown, "the call in flight", <-failed)
	if got := w.sh("cat log"); got != "once\n" {
		t.Errorf("the log holds %q", got)
	}
	if got := w.process(started.ID); got.Status != protocol.ProcessRunning || !w.alive(got.PID) {
		t.Errorf("the process is %+v", got)
	}
}

// cut kills what relays the stream to the worker, and says how many there were.
func (w *work) cut() int {
	w.Helper()
	if w.session.Backend == "ssh" {
		return w.cutHere()
	}
	out := w.within(`for p in /proc/[0-9]*; do tr '\0' ' ' < $p/cmdline | grep -qs ' [a]ttach ' && kill -9 ${p#/proc/} && echo killed; done; true`)
	return strings.Count(out, "killed")
}

// cutHere is cut for what relays on this machine.
func (w *work) cutHere() int {
	w.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.Fatal(err)
	}
	n := 0
	for _, proc := range procs {
		line, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		if err != nil || !strings.Contains(string(line), "\x00attach\x00") || !strings.Contains(string(line), "--site="+w.directory()) {
			continue // it has ended meanwhile, or is none
		}
		pid, err := strconv.Atoi(filepath.Base(proc))
		if err == nil {
			err = syscall.Kill(pid, syscall.SIGKILL)
		}
		if err != nil {
			w.Fatal(err)
		}
		n++
	}
	return n
}

// An environment that is gone is an error, for this service and for the next, and
// never an empty one.
func testEnvironmentGone(t *testing.T, profile members) {
	p := newPlace(t, members{"it": profile})
	w := p.serve().open("it", "vanished")
	w.sh("echo work > file")
	if w.session.Backend == "docker" {
		dockertest.Docker(t, "rm", "--force", "--volumes", w.session.EnvironmentID)
	} else if w.session.Backend == "ssh" {
		w.killWorker()
		if err := os.RemoveAll(w.directory()); err != nil {
			t.Fatal(err)
		}
	} else if err := os.RemoveAll(p.folder); err != nil {
		t.Fatal(err)
	}
	look := func(w *work) {
		t.Helper()
		w.until("the loss to be noticed", func() bool {
			_, err := w.try("list_files", members{})
			var e *protocol.Error
			return errors.As(err, &e) && e.Kind() == protocol.KindEnvironmentLost
		})
		w.refused(protocol.KindEnvironmentLost, "read_file", members{"path": "file"})
		w.refused(protocol.KindEnvironmentLost, "bash", members{"command": "true"})
	}
	look(w)
	w.service.kill()
	if again, err := p.serve().tryOpen("it", "vanished"); err == nil {
		look(again)
	} else {
		p.kind(protocol.KindEnvironmentLost, "opening it again", err)
	}
	if _, err := os.Lstat(p.folder); w.session.Backend == "local" && err == nil {
		t.Error("the folder was made anew")
	}
}

const variable, variableValue = "CAISSON_TEST_FORWARDED", "v4lue-that-nobody-may-see"

// A variable that is to be forwarded and is not there stops the start; the value
// of one that is reaches commands and nobody else.
func testVariables(t *testing.T, profile members) {
	profile["forward_env"] = []string{variable}
	p := newPlace(t, members{"it": profile})
	if _, err := p.serve().tryOpen("it", "none"); err == nil || !strings.Contains(err.Error(), variable) {
		t.Errorf("without the variable: %v", explain(err))
	}
	p.env = []string{variable + "=" + variableValue}
	w := p.serve().open("it", "forwarded")
	if got := w.sh("echo $" + variable); got != variableValue+"\n" {
		t.Errorf("the command has %q", got)
	}
	_, err := w.try("bash", members{"command": "true", "cwd": "/no/such"})
	said := map[string]string{"the log": w.log.String(), "an error": explain(err)}
	if w.session.Backend == "docker" {
		said["docker inspect"] = dockertest.Docker(t, "inspect", w.session.EnvironmentID)
		said["docker top"] = dockertest.Docker(t, "top", w.session.EnvironmentID, "-eo", "pid,args")
	} else {
		line, err := os.ReadFile("/proc/" + strconv.Itoa(p.worker()) + "/cmdline")
		if err != nil {
			t.Fatal(err)
		}
		said["the worker's arguments"] = string(line)
	}
	err = filepath.WalkDir(p.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() {
			var content []byte
			content, err = os.ReadFile(path)
			said[path] = string(content)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for where, text := range said {
		if strings.Contains(text, variableValue) {
			t.Errorf("%s tells the value", where)
		}
	}
}

// made are the containers and volumes of a place, and the directories of its
// environments behind ssh.
func (p *place) made() string {
	p.Helper()
	var directories []string
	for _, far := range p.far {
		found, err := filepath.Glob(filepath.Join(far, "*"))
		if err != nil {
			p.Fatal(err)
		}
		directories = append(directories, found...)
	}
	if len(p.far) > 0 {
		return strings.Join(directories, "\n")
	}
	raw, err := os.ReadFile(filepath.Join(p.state(), "store.json"))
	if err != nil {
		p.Fatal(err)
	}
	var store struct{ ID string }
	if err := json.Unmarshal(raw, &store); err != nil || store.ID == "" {
		p.Fatalf("%s: %v", raw, err)
	}
	label := "label=dev.caisson.store=" + store.ID
	return dockertest.Docker(p.TB, "ps", "--all", "--format", "container {{.Names}}", "--filter", label) +
		dockertest.Docker(p.TB, "volume", "ls", "--format", "volume {{.Name}}", "--filter", label, "--filter", "label=dev.caisson.kind=environment")
}

// With nobody connected a container, or a directory, that is not persistent goes
// after its idle limit, with all that is in it.
func testMadeAfterClient(t *testing.T, profile members) {
	profile["lifetime_seconds"] = 1
	p := newPlace(t, members{"it": profile})
	s := p.serve()
	w := s.open("it", "idle")
	w.background("exec sleep 1000")
	s.in.Close()
	s.exit()
	p.until("its end", func() bool { return p.made() == "" })
}

// What is wrong with an image is said before anything is made, and an image
// without a shell lacks nothing else.
func testImages(t *testing.T, profile members) {
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	foreign := dockertest.Bare()
	foreign.Arch = other
	with := func(image string) members {
		return members{"backend": "docker", "pull": "never", "image": image, "max_permission_mode": profile["max_permission_mode"]}
	}
	p := newPlace(t, members{
		"missing": with("caisson-test/no-such-image:1"), "foreign": with(dockertest.Use(t, foreign)), "bare": with(dockertest.Use(t, dockertest.Bare())),
	})
	s := p.serve()
	for name, says := range map[string]string{"missing": "caisson-test/no-such-image:1", "foreign": other} {
		if _, err := s.tryOpen(name, name); err == nil || !strings.Contains(explain(err), says) {
			t.Errorf("%s: %v", name, explain(err))
		}
		if left := p.made(); left != "" {
			t.Errorf("%s leaves %s", name, left)
		}
	}
	w := s.open("bare", "bare")
	if e := w.refused(protocol.KindUnsupported, "bash", members{"command": "true"}); !strings.Contains(e.Message, "shell") {
		t.Errorf("it says %s", explain(e))
	}
	w.call("write_file", members{"path": "f", "content": "needle"})
	if got := w.call("grep", members{"pattern": "needle"}); !strings.Contains(string(got.StructuredContent), `"total":1`) {
		t.Errorf("grep finds %s", got.StructuredContent)
	}
}

// prune removes what a crash has left without an owner, and nothing else.
func testPrune(t *testing.T, profile members) {
	profile["persistent"] = true
	away := members{"backend": "docker", "image": "any", "docker_host": "unix:///nowhere/docker.sock"}
	p := newPlace(t, members{"it": profile, "away": away})
	s := p.serve()
	orphan := s.open("it", "orphan").session.EnvironmentID
	known := s.open("it", "known").session.EnvironmentID
	owned := p.serve().open("it", "owned").session.EnvironmentID
	s.kill()
	// The crash was in the middle of a deletion.
	if err := errors.Join(os.RemoveAll(filepath.Join(p.state(), "sessions", "orphan")), os.RemoveAll(filepath.Join(p.state(), "environments", orphan))); err != nil {
		t.Fatal(err)
	}
	names := func(args ...string) string {
		t.Helper()
		out, err := p.run(append([]string{"prune"}, args...)...)
		if err != nil || !strings.Contains(out, orphan) || strings.Contains(out, known) || strings.Contains(out, owned) {
			t.Fatalf("prune %v says %v\n%s", args, err, out)
		}
		if !strings.Contains(out, "passed over") || !strings.Contains(out, "unix:///nowhere/docker.sock") {
			t.Errorf("prune %v does not name the engine that it could not reach:\n%s", args, out)
		}
		return out
	}
	names("--dry-run")
	if !strings.Contains(p.made(), orphan) {
		t.Fatal("a dry run removes something")
	}
	names()
	if left := p.made(); strings.Contains(left, orphan) || !strings.Contains(left, known) || !strings.Contains(left, owned) {
		t.Errorf("there is left: %s", left)
	}
}
