package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// speaker writes raw bytes to a service and reads its frames.
type speaker struct {
	*place
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (p *place) speak() *speaker {
	p.Helper()
	s := &speaker{place: p, cmd: p.command("serve")}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		p.Fatal(err)
	}
	s.in, s.out = in, bufio.NewReader(out)
	// A service that does not answer ends all reading.
	watch := time.AfterFunc(qualityPatience, func() { _ = s.cmd.Process.Kill() })
	p.Cleanup(func() { watch.Stop() })
	return s
}

func (s *speaker) say(text string) {
	s.Helper()
	if _, err := io.WriteString(s.in, text); err != nil {
		s.Fatal(err)
	}
}

// send writes a frame.
func (s *speaker) send(body string) {
	s.Helper()
	s.say(fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
}

// hear reads the next frame, which must hold the words.
func (s *speaker) hear(words ...string) {
	s.Helper()
	header, err := textproto.NewReader(s.out).ReadMIMEHeader()
	if err != nil {
		s.Fatalf("read a frame: %v", err)
	}
	n, err := strconv.Atoi(header.Get("Content-Length"))
	if err != nil {
		s.Fatal(err)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(s.out, body); err != nil {
		s.Fatal(err)
	}
	for _, w := range words {
		if !strings.Contains(string(body), w) {
			s.Errorf("%s does not say %s", body, w)
		}
	}
}

// ends reads to the end and checks the exit code.
func (s *speaker) ends(code int) {
	s.Helper()
	if _, err := io.Copy(io.Discard, s.out); err != nil {
		s.Error(err)
	}
	_ = s.cmd.Wait() // the code tells
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.Errorf("the exit code is %d, want %d", got, code)
	}
}

// Each bad frame has its error, and the connection goes on while it can.
func testBadFrames(t *testing.T) {
	p := newPlace(t, members{})
	s := p.speak()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{}}}`)
	s.hear(`"id":1`, `"protocolVersion":1`)
	s.send(`{"jsonrpc":`)
	s.hear(`"id":null`, "-32700")
	s.send(`{"id":2,"method":"profile/list"}`)
	s.hear("-32600")
	s.send(`[]`)
	s.hear(`"id":null`, "-32600")
	s.send(`{"jsonrpc":"2.0","id":3,"method":"no/such"}`)
	s.hear(`"id":3`, "-32601")
	s.send(`{"jsonrpc":"2.0","id":4,"method":"session/get","params":{"sessionId":7}}`)
	s.hear(`"id":4`, "-32602", `"path":"sessionId"`)

	// A body of 256 MiB is refused from its header and never held.
	before := memory(t, s.cmd.Process.Pid, "VmRSS")
	const giant = 256 << 20
	s.say(fmt.Sprintf("Content-Length: %d\r\n\r\n", giant))
	piece := strings.Repeat(" ", 1<<20)
	for range giant / len(piece) {
		s.say(piece)
	}
	s.hear(`"id":null`, "-32600")
	s.send(`{"jsonrpc":"2.0","id":5,"method":"profile/list","params":{}}`)
	s.hear(`"id":5`, `"default":"local"`)
	if grown := memory(t, s.cmd.Process.Pid, "VmHWM") - before; grown > 32<<20 {
		t.Errorf("the service has grown by %d MiB", grown>>20)
	}
	s.say("Content-Length: 2000000000\r\n\r\n")
	s.ends(2)

	s = p.speak()
	s.say("this is no header\r\n\r\n")
	s.ends(2)
	// A client that is cut off within a frame is a client that is gone.
	s = p.speak()
	s.say("Content-Length: 100\r\n\r\n{\"jsonrpc\"")
	s.in.Close()
	s.ends(1)
}

func testLifecycle(t *testing.T) {
	s := newPlace(t, members{}).start(client.Options{})
	_, err := s.ProfileList(s.ctx())
	code(t, "before initialize", err, protocol.CodeNotInitialized)
	if _, err := s.Initialize(s.ctx(), protocol.InitializeParams{}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Initialize(s.ctx(), protocol.InitializeParams{})
	code(t, "a second initialize", err, protocol.CodeInvalidRequest)
	if err := s.Shutdown(s.ctx()); err != nil {
		t.Error(err)
	}
	_, err = s.ProfileList(s.ctx())
	code(t, "after shutdown", err, protocol.CodeInvalidRequest)
	if err := s.Exit(s.ctx()); err != nil {
		t.Error(err)
	}
	if got := s.exit(); got != 0 {
		t.Errorf("the exit code is %d", got)
	}
}

func code(t *testing.T, what string, err error, want protocol.Code) {
	t.Helper()
	e, ok := err.(*protocol.Error) //nolint:errorlint // the client gives it plainly
	if !ok || e.Code != want {
		t.Errorf("%s: %v, want %d", what, err, want)
	}
}

// However the client goes, the service is gone soon after; what it had started
// goes on, and the next service finds it.
func testClientGone(t *testing.T) {
	p := newPlace(t, members{})
	var id string
	var pid int
	for what, leave := range map[string]func(*service){
		"the end of its input": func(s *service) { s.in.Close() },
		"SIGTERM":              func(s *service) { sendTo(s, syscall.SIGTERM) },
		"SIGHUP":               func(s *service) { sendTo(s, syscall.SIGHUP) },
		"an output that nobody reads": func(s *service) {
			s.out.Close()
			// Its next frame finds nobody; what the answer says does not matter.
			ctx, cancel := context.WithCancel(s.ctx())
			defer cancel()
			_, _ = s.ProfileList(ctx)
		},
	} {
		s := p.serve()
		w := s.open("", "lasting")
		if id == "" {
			started := w.background("exec sleep 1000")
			id, pid = started.ID, started.PID
		}
		if got := w.process(id); got.Status != protocol.ProcessRunning || got.PID != pid {
			t.Fatalf("before %s: %+v", what, got)
		}
		began := time.Now()
		leave(s)
		s.exit()
		// It has a budget of 8 s, and needs none of it, but on a busy machine.
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %v", what, took)
		}
		if !running(pid) {
			t.Fatalf("%s took the process along", what)
		}
	}

	// The death of the process that the client named.
	editor := exec.Command("sleep", "1000")
	if err := editor.Start(); err != nil {
		t.Fatal(err)
	}
	s := p.serve(func(_ *client.Options, init *protocol.InitializeParams) { init.ProcessID = &editor.Process.Pid })
	s.open("", "lasting")
	if err := editor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = editor.Wait() // it was killed
	s.exit()

	// Nobody is connected: the worker waits without doing anything.
	worker := p.worker()
	before := ticks(t, worker)
	p.serve().exitBy(t, syscall.SIGTERM)
	if used := ticks(t, worker) - before; used > 20 {
		t.Errorf("the idle worker has used %d hundredths of a second", used)
	}
}

func sendTo(s *service, sig syscall.Signal) {
	s.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.Fatal(err)
	}
}

func (s *service) exitBy(t *testing.T, sig syscall.Signal) {
	t.Helper()
	sendTo(s, sig)
	s.exit()
}

// ticks is the processor time that a process has used.
func ticks(t *testing.T, pid int) int {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	total := 0
	for _, f := range strings.Fields(rest)[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		total += n
	}
	return total
}

// 64 calls fill the service: one more is told at once, a cancelled one is over
// at once, waits hold no place, and 64 of them end together.
func testManyAtOnce(t *testing.T) {
	started, failed := make(chan string, 200), make(chan protocol.ExecutionParams, 200)
	here := newPlace(t, members{})
	s := here.serve(func(o *client.Options, init *protocol.InitializeParams) {
		init.Capabilities.ExecutionEvents = true
		o.ExecutionStarted = func(p protocol.ExecutionParams) { started <- p.CallID }
		o.ExecutionFailed = func(p protocol.ExecutionParams) { failed <- p }
	})
	w := s.open("", "")
	p := w.background("exec sleep 1000")

	var group sync.WaitGroup
	defer group.Wait()
	ctx, cancel := context.WithCancel(s.ctx())
	defer cancel()
	var cancels [64]context.CancelFunc
	for i := range cancels {
		var one context.Context
		one, cancels[i] = context.WithCancel(ctx)
		group.Go(func() {
			// Its end is told by an event.
			_, _ = s.ToolCall(one, protocol.ToolCallParams{
				SessionID: w.session.ID, Name: "bash", CallID: strconv.Itoa(i), Arguments: protocol.RawObject(`{"command":"exec sleep 1000"}`),
			})
		})
	}
	for range cancels {
		soon(t, started)
	}
	w.refused(protocol.KindOverloaded, "read_file", members{"path": "x"})
	if got := w.process(p.ID); got.Status != protocol.ProcessRunning {
		t.Errorf("a full service says %+v", got)
	}
	began := time.Now()
	cancels[17]()
	if e := soon(t, failed); e.CallID != "17" || e.Failure == nil || e.Failure.Kind != protocol.KindCancelled {
		t.Errorf("the event is %+v", e)
	}
	if took := time.Since(began); took > 30*time.Second { // a busy machine's
		t.Errorf("the cancelled call took %v", took)
	}
	// Its answer, which follows the event, leaves its place.
	here.until("there is room again", func() bool {
		_, err := s.ToolCall(s.ctx(), protocol.ToolCallParams{
			SessionID: w.session.ID, Name: "write_file", Arguments: protocol.RawObject(`{"path":"x","content":"room"}`),
		})
		if err != nil && kindOf(err) != protocol.KindOverloaded {
			t.Fatalf("write_file: %v", explain(err))
		}
		return err == nil
	})

	for range 64 {
		group.Go(func() {
			r, err := s.ProcessWait(ctx, protocol.ProcessWaitParams{SessionID: w.session.ID, ProcessID: p.ID})
			if err != nil || r.Process.Status != protocol.ProcessExited {
				t.Errorf("a wait ends with %+v, %v", r, err)
			}
		})
	}
	if _, err := s.ProcessStop(s.ctx(), w.named(p.ID)); err != nil {
		t.Errorf("stop: %v", explain(err))
	}
	for _, c := range cancels {
		c()
	}
	for range len(cancels) - 1 {
		if e := soon(t, failed); e.Failure.Kind != protocol.KindCancelled {
			t.Errorf("the event is %+v", e)
		}
	}
	group.Wait()
}

// soon receives what must come.
func soon[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	deadline := time.NewTimer(qualityPatience)
	defer deadline.Stop()
	select {
	case v = <-c:
	case <-deadline.C:
		t.Fatalf("waited %v in vain for a %T", qualityPatience, v)
	}
	return v
}

// One session has one service; a dead one's is taken over.
func testTwoServices(t *testing.T) {
	p := newPlace(t, members{})
	first, second := p.serve(), p.serve()
	first.open("", "one")
	_, err := second.tryOpen("", "one")
	if e := p.kind(protocol.KindSessionBusy, "the second service", err); !strings.Contains(e.Message, strconv.Itoa(first.cmd.Process.Pid)) {
		t.Errorf("%q does not name %d", e.Message, first.cmd.Process.Pid)
	}
	first.kill()
	second.open("", "one").sh("true")
}

// A state directory that takes nothing is named, and no session begins.
func testReadOnlyState(t *testing.T) {
	if os.Getuid() == 0 {
		t.Log("root may write everywhere; TestAsRootQuality/ReadOnlyState is the same for root")
		return
	}
	p := newPlace(t, members{})
	p.serve().open("", "first")
	sessions := filepath.Join(p.state(), "sessions")
	if err := os.Chmod(sessions, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := p.serve().tryOpen("", "second")
	if err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("it says %v", explain(err))
	}
	if err := os.Chmod(sessions, 0o700); err != nil {
		t.Fatal(err)
	}
	p.serve().open("", "second").sh("true")
}

// A umask that keeps everybody out keeps nobody from what is their own.
func testUmask(t *testing.T) {
	p := newPlace(t, members{})
	p.wrap = []string{"sh", "-c", `umask 777; exec "$@"`, "sh"}
	w := p.serve().open("", "closed")
	w.call("write_file", members{"path": "made", "content": "by a tool"})
	w.sh("echo by a command > ran; cat made")
	for _, name := range []string{"made", "ran"} {
		info, err := os.Stat(filepath.Join(w.folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has the mode %v", name, mode)
		}
	}
}

// An engine that is not there, or never answers, is named in time, with what to
// do.
func testDockerDown(t *testing.T) {
	mute := filepath.Join(t.TempDir(), "mute.sock")
	l, err := net.Listen("unix", mute)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, socket := range []string{"/no/such/docker.sock", mute} {
		s := newPlace(t, members{"box": members{"backend": "docker", "image": "caisson-test/none:1", "docker_host": "unix://" + socket}}).serve()
		began := time.Now()
		_, err := s.tryOpen("box", "")
		if e := s.kind(protocol.KindBackendUnavailable, socket, err); !strings.Contains(e.Message, socket) || e.Data.Hint == "" {
			t.Errorf("it says %s", explain(err))
		}
		// It takes 2.5 s at most, but on a busy machine.
		if took := time.Since(began); took > 30*time.Second {
			t.Errorf("%s: it took %v", socket, took)
		}
	}
}

// Without Landlock a confined command fails and says what is needed; it never
// runs, and the doctor knows.
func testWithoutLandlock(t *testing.T) {
	p := newPlace(t, members{"free": localProfile()})
	p.olderKernel(withoutLandlock)
	p.serve().open("free", "").withoutLandlock()
	p.finds("Landlock", "doctor")
	p.wrap = nil
	p.finds("", "doctor")
}

// withoutLandlock has confined commands refused in the session, and others run.
func (w *work) withoutLandlock() {
	w.Helper()
	e := w.refused(protocol.KindUnsupported, "bash", members{"command": "touch PROOF"})
	if !strings.Contains(e.Message, "Landlock") || !strings.Contains(e.Message+e.Data.Hint, "3") {
		w.Errorf("it says %s", explain(e))
	}
	_, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: w.session.ID, Command: "touch PROOF"})
	w.kind(protocol.KindUnsupported, "a process", err)
	if _, err := os.Lstat(filepath.Join(w.session.Root, "PROOF")); err == nil {
		w.Error("it ran unconfined")
	}
	w.call("write_file", members{"path": "f", "content": "files need no Landlock"})
	if r, err := w.try("bash", members{"command": "echo chosen"}, unconfined); err != nil || into[ran](w, r).Stdout != "chosen\n" {
		w.Errorf("unconfined: %v", explain(err))
	}
}

// finds has a check of the program's find what it must: nothing, or a failure.
func (p *place) finds(failure string, check ...string) {
	p.Helper()
	out, err := p.run(check...)
	if failed := strings.Contains(out, "FAILED"); failed != (err != nil) || failed != (failure != "") || !strings.Contains(out, failure) {
		p.Errorf("%q says: %v\n%s", check, err, out)
	}
}

// Descriptors are kept from commands on a kernel, too, that cannot close many at once.
func testWithoutCloseRange(t *testing.T) {
	p := newPlace(t, members{"it": localProfile()})
	p.olderKernel(withoutCloseRange)
	testDescriptors(p.serve().open("it", ""))
}

// olderKernel has the place's programs run on a kernel that seems to lack something.
func (p *place) olderKernel(part string) {
	p.Helper()
	self, err := os.Executable()
	if err != nil {
		p.Fatal(err)
	}
	p.wrap = []string{self, part}
}
