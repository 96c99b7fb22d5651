package main

import (
	"encoding/base64"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// outside is a directory outside the workspace that commands could write to.
func outside(w *work) string {
	w.Helper()
	if w.session.Backend == "docker" {
		return dockertest.Open
	}
	return w.home
}

// unconfined asks for the widest mode.
func unconfined(p *protocol.ToolCallParams) { p.PermissionMode = protocol.ModeUnconfined }

// A path does not leave the root by "..", by being absolute or by a link, not
// even one that is swapped meanwhile; links that stay inside work.
func testPathLeaves(w *work) {
	out := outside(w)
	w.sh("mkdir -p paths/real && cd paths && echo inside > real/f && ln -s real/f good && ln -s $PWD/real/f absolute && ln -s /etc etc && " +
		"ln -s /etc/passwd file && ln -s " + out + "/nothing dangling && ln -s loop loop && ln -s ../../../../../etc/passwd up")
	for _, path := range []string{"../x", "paths/../../x", "/etc/passwd", "paths/etc/passwd", "paths/file", "paths/dangling", "paths/up"} {
		w.refused(protocol.KindPathOutsideRoot, "read_file", members{"path": path})
		w.refused(protocol.KindPathOutsideRoot, "write_file", members{"path": path, "content": "x"})
		_, err := w.FileRead(w.ctx(), protocol.FileReadParams{SessionID: w.session.ID, Path: path})
		w.kind(protocol.KindPathOutsideRoot, "fs/readFile "+path, err)
	}
	if r, err := w.try("read_file", members{"path": "paths/loop"}); err != nil || !r.IsError {
		w.Errorf("a looping link: %v, %v", r, err)
	}
	for _, path := range []string{"paths/good", "paths/absolute"} {
		if got := into[struct{ Content string }](w, w.call("read_file", members{"path": path})); got.Content != "inside\n" {
			w.Errorf("%s holds %q", path, got.Content)
		}
	}
	p := w.background("cd paths && while :; do ln -sfn /etc swap; ln -sfn real swap; done")
	done, refused := 0, 0
	w.until("both sides of the race", func() bool {
		r, err := w.try("read_file", members{"path": "paths/swap/passwd"})
		switch {
		case err != nil:
			w.kind(protocol.KindPathOutsideRoot, "the race", err)
			refused++
		case !r.IsError:
			w.Fatalf("the race was lost: %s", r.StructuredContent)
		default:
			done++
		}
		return done > 10 && refused > 10
	})
	if _, err := w.ProcessStop(w.ctx(), w.named(p.ID)); err != nil {
		w.Error(explain(err))
	}
}

// A command does not write outside, and hears why.
func testWriteLimits(w *work) {
	victim := outside(w) + "/victim"
	if r, err := w.try("bash", members{"command": "echo precious > " + victim}, unconfined); err != nil || into[ran](w, r).ExitCode != 0 {
		w.Fatalf("the place outside cannot be written at all: %s, %v", r.StructuredContent, err)
	}
	for _, line := range []string{
		"echo x > " + victim + "2", ": > " + victim, "truncate -s 0 " + victim, "rm " + victim, "mv " + victim + " mine",
		"touch mine && ln mine " + victim + "3", "mkdir " + victim + "4", "ln -s mine " + victim + "5", "mkfifo " + victim + "6",
		"setsid -w sh -c 'echo x > " + victim + "'",
	} {
		if r := w.bash(line); r.ExitCode == 0 {
			w.Errorf("%s: %+v", line, r)
		}
	}
	if r := w.bash("echo x > " + victim); !r.SandboxDenied {
		w.Errorf("the denial is not told: %+v", r)
	}
	if end := w.over(w.background("echo x > " + victim).ID); end.ExitCode == nil || *end.ExitCode == 0 {
		w.Errorf("a process wrote outside: %+v", end)
	}
	r, err := w.try("bash", members{"command": "cat " + victim + "; ls -d " + victim + "*; rm " + victim}, unconfined)
	if got := into[ran](w, r); err != nil || got.Stdout != "precious\n"+victim+"\n" {
		w.Errorf("outside there is %+v, %v", got, err)
	}
}

// A command does not reach its worker's socket, nor another session's.
func testSockets(w *work) {
	program := filepath.Join(programDir, "caisson")
	if w.session.Backend == "command" {
		return // an adapter has no socket
	}
	if w.session.Backend == "docker" {
		program = "/.caisson/bin/caisson"
	}
	const question = `{"id":"1","method":"process/list"}`
	w.sh(`tr '\0' '\n' < /proc/$PPID/cmdline | grep ^-- | grep -v ready-fd > arguments; echo '` + question + `' > question`)
	attach := program + " attach $(cat arguments)"
	// Whoever may connect is asked for the token.
	line := "coproc { " + attach + " 2>&1; }; cat question >&${COPROC[1]}; read -t 10 -r answer <&${COPROC[0]}; echo \"answer $answer\""
	var allowed string
	if w.session.Backend == "docker" {
		allowed = w.within("cd " + w.session.Root + " && " + line)
	} else {
		cmd := exec.Command("bash", "-c", line)
		cmd.Dir = w.session.Root
		out, err := cmd.CombinedOutput()
		if err != nil {
			w.Fatalf("%s: %v: %s", line, err, out)
		}
		allowed = string(out)
	}
	if !strings.Contains(allowed, "token is missing") {
		w.Fatalf("whoever may connect gets %q", allowed)
	}
	if got := w.bash(line); strings.Contains(got.Stdout, "token") || !strings.HasPrefix(got.Stdout, "answer ") {
		w.Errorf("a command of the session gets %+v", got)
	}
	if w.session.Backend == "docker" {
		return // another session is another container
	}
	other := w.open("it", "other")
	if got := other.bash("cp " + w.session.Root + "/question . 2>/dev/null; " + line); strings.Contains(got.Stdout, "token") || !strings.HasPrefix(got.Stdout, "answer ") {
		w.Errorf("another session's command gets %+v", got)
	}
	if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "other"}); err != nil {
		w.Error(explain(err))
	}
}

// Standard input is at its end, for whoever reads it.
func testStdin(w *work) {
	if got := w.sh("cat; (cat <&0); sh -c 'read x; echo $?'"); got != "1\n" {
		w.Errorf("it reads %q", got)
	}
	// The protocol's own input has lost nothing.
	if got := w.sh("echo next"); got != "next\n" {
		w.Errorf("the next call gives %q", got)
	}
}

// A child has its three standard descriptors and no other: none of the
// protocol's, none of another session's and none that the editor left to the service.
func testDescriptors(w *work) {
	const line = "cd /proc/self/fd && echo *"
	// Another session, with a process of its own, is beside it.
	other := w.open("it", "beside")
	other.background("exec sleep 1000")
	defer func() {
		if _, err := w.SessionDelete(w.ctx(), protocol.SessionDeleteParams{SessionID: "beside"}); err != nil {
			w.Error(explain(err))
		}
	}()
	printed := func(tty *protocol.TTY) string {
		r, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: w.session.ID, Command: line, TTY: tty})
		if err != nil {
			w.Fatal(explain(err))
		}
		w.over(r.Process.ID)
		return strings.ReplaceAll(w.read(r.Process.ID, 0, "").Data, "\r\n", "\n")
	}
	for what, got := range map[string]string{
		"bash": w.sh(line), "a process": printed(nil), "a process with a terminal": printed(&protocol.TTY{Cols: 80, Rows: 24}),
	} {
		// The shell's own listing of the directory is the fourth.
		if got != "0 1 2 3\n" && got != "0 1 2\n" {
			w.Errorf("%s sees the descriptors %q", what, got)
		}
	}
}

// A command that makes its standard descriptors such that do not block does so to nobody
// else: what is written and read next is all there.
func testNonblocking(w *work) {
	const line = "dd iflag=nonblock oflag=nonblock count=0 status=none && dd oflag=nonblock count=0 status=none >&2 && " +
		"for f in 0 1 2; do set -- $(grep ^flags: /proc/$$/fdinfo/$f); echo $(($2 & 04000)); done"
	const nonblocking = "2048\n2048\n2048\n"
	if got := w.sh(line); got != nonblocking {
		w.Errorf("the flags of a command are %q", got)
	}
	for _, tty := range []*protocol.TTY{nil, {Cols: 80, Rows: 24}} {
		r, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: w.session.ID, Command: line, TTY: tty})
		if err != nil {
			w.Fatal(explain(err))
		}
		w.over(r.Process.ID)
		if got := strings.ReplaceAll(w.read(r.Process.ID, 0, "").Data, "\r\n", "\n"); got != nonblocking {
			w.Errorf("the flags of a process are %q", got)
		}
	}
	if got := w.sh("seq 40000; cat"); len(got) != 228894 || !strings.HasSuffix(got, "\n39999\n40000\n") {
		w.Errorf("the next command prints %d bytes", len(got))
	}
	p := w.background("cat | tail -n 1")
	if _, err := w.ProcessWrite(w.ctx(), protocol.ProcessWriteParams{SessionID: w.session.ID, ProcessID: p.ID, Data: strings.Repeat("input\n", 50_000) + "last\n"}); err != nil {
		w.Error(explain(err))
	}
	if _, err := w.ProcessCloseStdin(w.ctx(), w.named(p.ID)); err != nil {
		w.Error(explain(err))
	}
	w.over(p.ID)
	if got := w.read(p.ID, 0, "").Data; got != "last\n" {
		w.Errorf("the next process reads %q", got)
	}
}

// The call returns when the command itself has ended; the grandchild that holds
// its pipe is left alone.
func testGrandchild(w *work) {
	began := time.Now()
	got := w.sh("sleep 300 & echo $!")
	if took := time.Since(began); took > 20*time.Second {
		w.Errorf("it took %v", took)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(got))
	if err != nil {
		w.Fatal(err)
	}
	if !w.alive(pid) {
		w.Error("the grandchild is gone")
	}
	w.sh(fmt.Sprintf("kill %d", pid))
}

// A command that takes too long keeps its output and goes on as a process.
func testTimeout(w *work) {
	r := into[ran](w, w.call("bash", members{"command": "echo $$; exec sleep 300", "timeout_seconds": math.Ceil(w.moment().Seconds())}))
	if !r.TimedOut || r.Promoted == "" {
		w.Fatalf("it is %+v", r)
	}
	p := w.process(r.Promoted)
	if p.Status != protocol.ProcessRunning || w.session.Backend == "local" && strings.TrimSpace(r.Stdout) != strconv.Itoa(p.PID) || strings.TrimSpace(r.Stdout) == "" {
		w.Errorf("it is %+v, and said %q", p, r.Stdout)
	}
	w.reads(p.ID, r.Stdout)
	if _, err := w.ProcessStop(w.ctx(), w.named(p.ID)); err != nil {
		w.Error(explain(err))
	}
}

// A call that is cancelled, or hits the caller's limit, is dead with its group.
func testCancel(w *work) {
	line := "sleep 301 & echo $! > child; echo $$ > self; wait"
	moment := w.moment()
	limit := func(p *protocol.ToolCallParams) {
		p.Constraints = &protocol.Constraints{Timeout: protocol.Duration(moment)}
	}
	w.refused(protocol.KindTimeout, "bash", members{"command": line}, limit)
	for _, name := range []string{"child", "self"} {
		pid, err := strconv.Atoi(strings.TrimSpace(w.sh("cat " + name)))
		if err != nil {
			w.Fatal(err)
		}
		w.until("the end of the "+name, func() bool { return !w.alive(pid) })
	}
}

// hugeOutput is more than anybody keeps in memory.
const hugeOutput = 2 << 30

// Output that nobody reads costs no memory, is counted right and is kept
// within a bound.
func testHugeOutput(w *work) {
	var pids []int
	if w.session.Backend == "docker" {
		for line := range strings.Lines(dockertest.Docker(w.TB, "top", w.session.EnvironmentID, "-eo", "pid,comm")) {
			if f := strings.Fields(line); len(f) == 2 && f[1] == "caisson-worker" {
				pid, err := strconv.Atoi(f[0])
				if err != nil {
					w.Fatal(err)
				}
				pids = append(pids, pid)
			}
		}
	} else {
		pids = []int{w.worker()}
	}
	if len(pids) != 1 {
		w.Fatalf("the workers are %v", pids)
	}
	pids = append(pids, w.cmd.Process.Pid)
	before := make([]int64, len(pids))
	for i, pid := range pids {
		before[i] = memory(w.TB, pid, "VmRSS")
	}
	p := w.background(fmt.Sprintf("head -c %d /dev/zero", hugeOutput))
	if end := w.over(p.ID); end.TotalBytes != hugeOutput || end.ExitCode == nil || *end.ExitCode != 0 {
		w.Errorf("it ends as %+v", end)
	}
	for i, pid := range pids {
		// The peak of a process that was larger at its start says less, never too little.
		if grown := memory(w.TB, pid, "VmHWM") - before[i]; grown >= 64<<20 {
			w.Errorf("process %d has grown by %d MiB", pid, grown>>20)
		}
	}
	r := w.read(p.ID, 0, protocol.EncodingBase64)
	if kept := int64(hugeOutput) - r.StartOffset; !r.Truncated || kept < 32<<20 || kept > 64<<20 {
		w.Errorf("of the output %d bytes are kept, truncated %v", kept, r.Truncated)
	}
}

// Bytes are exact in base64, text ends on characters, and no call fails for
// what a command writes.
func testCharacters(w *work) {
	const raw = "a\xc3\xa9\x00\xff\xe2\x82"
	line := `printf 'a\303\251\000\377\342\202'`
	p := w.background(line)
	w.over(p.ID)
	r := w.read(p.ID, 0, protocol.EncodingBase64)
	if got, err := base64.StdEncoding.DecodeString(r.Data); err != nil || string(got) != raw {
		w.Errorf("the bytes are %q, %v", got, err)
	}
	if r := w.read(p.ID, 0, protocol.EncodingUTF8); r.Data != "aé\x00\ufffd" || !r.Lossy {
		w.Errorf("the text is %+v", r)
	}
	cut := w.background(`printf 'abc\303\251'`)
	w.over(cut.ID)
	page, err := w.ProcessRead(w.ctx(), protocol.ProcessReadParams{SessionID: w.session.ID, ProcessID: cut.ID, Offset: new(int64), MaxBytes: 4, Encoding: protocol.EncodingUTF8})
	if err != nil || page.Data != "abc" || page.EndOffset != 3 {
		w.Errorf("a page that ends within a character is %+v, %v", page, err)
	}
	if got := w.sh(line); got != "aé\x00\ufffd" {
		w.Errorf("bash gives %q", got)
	}
}

// Files are listed, read and written by the name that the list gave.
func testNames(w *work) {
	w.sh(`mkdir names && cd names && for n in $'bad\xff' $'two\nlines' 'bytes:x' ' '; do printf old > "$n"; done`)
	list := into[struct {
		Entries []struct{ Path string }
	}](w, w.call("list_files", members{"path": "names"}))
	if len(list.Entries) != 4 {
		w.Errorf("it lists %v", list.Entries)
	}
	for _, e := range list.Entries {
		if got := into[struct{ Content string }](w, w.call("read_file", members{"path": e.Path})); got.Content != "old" {
			w.Errorf("%q holds %q", e.Path, got.Content)
		}
		w.call("write_file", members{"path": e.Path, "content": "new"})
	}
	if got := w.sh("cd names && cat * && echo && ls | wc -l"); got != "newnewnewnew\n5\n" {
		w.Errorf("the files hold %q", got)
	}
}

// An edit changes only what it names.
func testLineEndings(w *work) {
	for name, row := range map[string][2]string{
		"crlf":     {"one\r\ntwo\r\nthree\r\n", "one\r\n2\r\nthree\r\n"},
		"mixed":    {"one\r\ntwo\nthree\r\n", "one\r\n2\nthree\r\n"},
		"bare cr":  {"one\rtwo\rthree", "one\r2\rthree"},
		"bom":      {"\ufeffone\r\ntwo", "\ufeffone\r\n2"},
		"no final": {"one\ntwo", "one\n2"},
	} {
		path := "endings/" + name
		if _, err := w.FileWrite(w.ctx(), protocol.FileWriteParams{SessionID: w.session.ID, Path: path, Data: []byte(row[0])}); err != nil {
			w.Fatal(explain(err))
		}
		w.sh("chmod 751 'endings/" + name + "'")
		w.call("edit_file", members{"path": path, "old_text": "two", "new_text": "2"})
		r, err := w.FileRead(w.ctx(), protocol.FileReadParams{SessionID: w.session.ID, Path: path})
		if err != nil || string(r.Data) != row[1] {
			w.Errorf("%s holds %q, %v", name, r.Data, err)
		}
		if got := w.sh("stat -c %a 'endings/" + name + "'"); got != "751\n" {
			w.Errorf("%s has the mode %s", name, got)
		}
	}
	// A newline of an edit is what the file has there.
	w.sh(`printf 'one\r\ntwo\r\nthree\n' > endings/lines`)
	w.call("edit_file", members{"path": "endings/lines", "old_text": "one\ntwo", "new_text": "1\n1.5\n2"})
	if got := w.sh("od -An -c endings/lines | tr -d ' \n'"); got != `1\r\n1.5\r\n2\r\nthree\n` {
		w.Errorf("the lines are %s", got)
	}
}

// A terminal has its size from the first instruction on, and keeps the one that
// it is given before anything was read from it.
func testTerminal(w *work) {
	r, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{
		SessionID: w.session.ID, Command: "stty size; read x; stty size", TTY: &protocol.TTY{Cols: 123, Rows: 45},
	})
	if err != nil {
		w.Fatal(explain(err))
	}
	id := r.Process.ID
	w.reads(id, "45 123")
	if _, err := w.ProcessResize(w.ctx(), protocol.ProcessResizeParams{SessionID: w.session.ID, ProcessID: id, Cols: 77, Rows: 33}); err != nil {
		w.Error(explain(err))
	}
	if _, err := w.ProcessWrite(w.ctx(), protocol.ProcessWriteParams{SessionID: w.session.ID, ProcessID: id, Data: "\n"}); err != nil {
		w.Error(explain(err))
	}
	w.over(id)
	if got := w.read(id, 0, "").Data; !strings.HasSuffix(strings.TrimSpace(got), "33 77") {
		w.Errorf("it prints %q", got)
	}

	// A program that is executed only when the size has changed begins with that.
	r, err = w.ProcessStart(w.ctx(), protocol.ProcessStartParams{
		SessionID: w.session.ID, Command: "while [ ! -e sized ]; do sleep 0.01; done; exec stty size", TTY: &protocol.TTY{Cols: 123, Rows: 45},
	})
	if err != nil {
		w.Fatal(explain(err))
	}
	id = r.Process.ID
	if _, err := w.ProcessResize(w.ctx(), protocol.ProcessResizeParams{SessionID: w.session.ID, ProcessID: id, Cols: 55, Rows: 22}); err != nil {
		w.Error(explain(err))
	}
	w.call("write_file", members{"path": "sized", "content": ""})
	w.reads(id, "22 55")
	w.over(id)
}

// A moment after the last command there is no zombie, whatever the processes did.
func testZombies(w *work) {
	w.sh("for i in 1 2 3 4 5; do (true &); (setsid true &); (setsid sh -c 'true & exec sleep 0.01' &); done")
	p := w.background("(sleep 0.01 &); exec true")
	w.over(p.ID)
	w.until("the end of all zombies", func() bool { return zombies(w) == "" })
}

// What a command left behind ends with its session, however it hides: without a parent,
// in a session of its own, with nothing in its environment.
func testHiding(t *testing.T) {
	w := newPlace(t, members{}).serve().open("", "hiding")
	w.sh(`setsid env -i /bin/sh -c 'cd /; sleep 1000 <&- >&- 2>&- & echo $!' > pid`)
	pid, err := strconv.Atoi(strings.TrimSpace(w.sh("cat pid")))
	if err != nil || !running(pid) {
		t.Fatalf("there is no process %d: %v", pid, err)
	}
	if _, err := w.SessionClose(w.ctx(), protocol.SessionParams{SessionID: "hiding"}); err != nil {
		t.Error(explain(err))
	}
	if running(pid) {
		t.Errorf("%d still runs", pid)
	}
}

// zombies are the dead children of the session's worker and of its init.
func zombies(w *work) string {
	if w.session.Backend == "docker" {
		return w.within("grep -l '^State:.Z' /proc/[0-9]*/status || true")
	}
	var found []string
	parent := fmt.Sprintf("\nPPid:\t%d\n", w.worker())
	statuses, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		w.Fatal(err)
	}
	for _, name := range statuses {
		status, err := os.ReadFile(name)
		if err == nil && strings.Contains(string(status), parent) && strings.Contains(string(status), "\nState:\tZ") {
			found = append(found, name)
		}
	}
	return strings.Join(found, " ")
}

// Files that hold secrets are left alone by tools, published to nobody, and open
// to people.
func testSecretFiles(w *work) {
	w.sh("mkdir -p secret/.ssh && echo TOKEN=s3cret > secret/.env && echo s3cret > secret/.ssh/id_ed25519 && ln -s .env secret/innocent && git init -q secret/repo" +
		" && echo s3cret > secret/Server.PEM && mkdir secret/.SSH && echo s3cret > secret/.SSH/key")
	for _, path := range []string{"secret/.env", "secret/Server.PEM", "secret/.SSH/key", "secret/innocent", "secret/.ssh/id_ed25519", "secret/repo/.git/config"} {
		for tool, args := range map[string]members{
			"read_file":        {"path": path},
			"write_file":       {"path": path, "content": "x"},
			"edit_file":        {"path": path, "old_text": "s3cret", "new_text": "x"},
			"present_artifact": {"path": path},
			"grep":             {"path": path, "pattern": "s3"},
		} {
			if e := w.refused(protocol.KindDenied, tool, args); !strings.Contains(e.Data.Hint, "max_permission_mode") {
				w.Errorf("%s %s: the hint is %q", tool, path, e.Data.Hint)
			}
		}
		_, err := w.ArtifactPublish(w.ctx(), protocol.ArtifactPublishParams{SessionID: w.session.ID, Path: path})
		w.kind(protocol.KindDenied, "artifact/publish", err)
		if _, err := w.FileRead(w.ctx(), protocol.FileReadParams{SessionID: w.session.ID, Path: path}); err != nil {
			w.Errorf("a person reads %s: %v", path, explain(err))
		}
	}
	if got := w.call("grep", members{"path": "secret", "pattern": "s3cret"}); strings.Contains(string(got.StructuredContent), "TOKEN") {
		w.Errorf("grep prints %s", got.StructuredContent)
	}
	if r, err := w.try("read_file", members{"path": "secret/.env"}, unconfined); err != nil || r.IsError {
		w.Errorf("unconfined: %v", explain(err))
	}
}
