package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/rpc/client"
	"github.com/caisson-dev/caisson/rpc/protocol"
)

// qualityPatience ends a test that would hang; nothing is slow because of it.
const qualityPatience = 2 * time.Minute

// place is one user's machine: a home, a configuration, a workspace.
type place struct {
	testing.TB
	home, runtime, folder string
	env                   []string // beside the directories
	wrap                  []string // what starts the program, if not the test itself
	program               string   // the program itself
	far                   []string // where environments behind ssh are made
	adapters              []string // where those of adapters are
	undo                  []func() error
}

// members are those of a JSON object.
type members map[string]any

// newPlace makes a place with these profiles. Whatever was opened there is gone
// with the test, which fails when something is left.
func newPlace(t testing.TB, profiles members) *place {
	t.Helper()
	runtime, err := os.MkdirTemp("", "crt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	p := &place{
		TB: t, home: t.TempDir(), runtime: runtime, folder: filepath.Join(t.TempDir(), "work"),
		program: filepath.Join(programDir, "caisson"),
	}
	config, err := json.Marshal(members{"execution_environments": members{"profiles": profiles}})
	if err != nil {
		t.Fatal(err)
	}
	for _, profile := range profiles {
		if m, ok := profile.(members); ok && m["backend"] == "ssh" {
			p.far = append(p.far, m["workspace"].(string))
		}
		if m, ok := profile.(members); ok && m["backend"] == "command" {
			p.adapters = append(p.adapters, filepath.Dir(m["workspace"].(string)))
		}
	}
	err = errors.Join(os.Mkdir(p.folder, 0o700), os.WriteFile(p.config(), config, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.clear)
	return p
}

// withoutSocket has a runtime directory whose path leaves room for the sockets of local
// workers, and for none that a container would share: its sessions stay on the engine's
// stream.
func (p *place) withoutSocket() *place {
	p.Helper()
	const length = 70
	short := p.runtime
	p.runtime = filepath.Join(short, strings.Repeat("r", max(1, length-len(short)-1)))
	if err := os.Mkdir(p.runtime, 0o700); err != nil {
		p.Fatal(err)
	}
	p.undo = append(p.undo, func() error { return os.RemoveAll(short) })
	return p
}

func (p *place) config() string { return filepath.Join(p.home, "config.json") }
func (p *place) state() string  { return filepath.Join(p.home, "state", "caisson") }

// clear removes every session and looks for what is left.
func (p *place) clear() {
	entries, err := os.ReadDir(filepath.Join(p.state(), "sessions"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		p.Error(err)
	}
	for _, e := range entries {
		if out, err := p.run("session", "delete", "--force", e.Name()); err != nil {
			p.Errorf("%v: %s", err, out)
		}
	}
	p.until("the end of all workers", func() bool { return len(p.workers()) == 0 })
	for _, f := range p.undo {
		if err := f(); err != nil {
			p.Error(err)
		}
	}
	if err := os.RemoveAll(p.runtime); err != nil {
		p.Error(err)
	}
}

// command is the program in this place.
func (p *place) command(args ...string) *exec.Cmd {
	argv := append(p.wrap[:len(p.wrap):len(p.wrap)], append([]string{p.program}, args...)...)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_RUNTIME_DIR="+p.runtime, "XDG_STATE_HOME="+filepath.Join(p.home, "state"),
		"XDG_DATA_HOME="+filepath.Join(p.home, "data"), "XDG_CONFIG_HOME="+p.home, "CAISSON_CONFIG="+p.config())
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Dir = p.home
	return cmd
}

// run runs the program to its end.
func (p *place) run(args ...string) (string, error) {
	out, err := p.command(args...).CombinedOutput()
	return string(out), err
}

// workers are the pids of the workers of this place that run on this machine, also
// of those behind ssh.
func (p *place) workers() []int {
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		p.Fatal(err)
	}
	var pids []int
	for _, proc := range procs {
		line, err := os.ReadFile(filepath.Join(proc, "cmdline"))
		pid, atoiErr := strconv.Atoi(filepath.Base(proc))
		for _, state := range slices.Concat([]string{p.state()}, p.far, p.adapters) {
			if err == nil && atoiErr == nil && bytes.Contains(line, []byte("--state="+state)) && bytes.Contains(line, []byte("\x00worker\x00")) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// worker is the pid of the place's only worker.
func (p *place) worker() int {
	p.Helper()
	pids := p.workers()
	if len(pids) != 1 {
		p.Fatalf("there are %d workers, want one", len(pids))
	}
	return pids[0]
}

// until waits until ok.
func (p *place) until(what string, ok func() bool) {
	p.Helper()
	deadline := time.NewTimer(qualityPatience)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			p.Fatalf("waited %v in vain: %s", qualityPatience, what)
		}
	}
}

// service is a running program with a client.
type service struct {
	*client.Client
	*place
	cmd   *exec.Cmd
	in    io.WriteCloser // its standard input
	out   io.ReadCloser  // its standard output
	log   *buffer
	ended chan struct{} // closed when it has ended
}

// buffer is what a program says, to be read while it speaks.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// start starts a service that nobody has spoken to yet.
func (p *place) start(o client.Options) *service {
	p.Helper()
	s := &service{place: p, cmd: p.command("serve", "--log-level", "debug"), log: new(buffer), ended: make(chan struct{})}
	s.cmd.Stderr = s.log
	in, err := s.cmd.StdinPipe()
	if err != nil {
		p.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	// Editors leave descriptors of their own to whatever they start.
	left, openErr := os.Open(os.DevNull)
	if err = errors.Join(err, openErr); err == nil {
		s.cmd.ExtraFiles = []*os.File{left, left, left}
		err = errors.Join(s.cmd.Start(), left.Close())
	}
	if err != nil {
		p.Fatal(err)
	}
	s.in, s.out = in, out
	s.Client = client.New(out, in, o)
	go func() {
		defer close(s.ended)
		<-s.Done() // the pipe must be read to its end before Wait
		_ = s.cmd.Wait()
	}()
	p.Cleanup(func() {
		if err := s.Close(); err != nil && !s.gone() {
			p.Errorf("close: %v", err)
		}
		s.exit()
		if p.Failed() {
			p.Logf("the service said:\n%s", s.log.String())
		}
	})
	return s
}

// serve starts a service and initializes it.
func (p *place) serve(change ...func(*client.Options, *protocol.InitializeParams)) *service {
	p.Helper()
	var o client.Options
	var init protocol.InitializeParams
	for _, f := range change {
		f(&o, &init)
	}
	s := p.start(o)
	if _, err := s.Initialize(p.ctx(), init); err != nil {
		p.Fatalf("initialize: %v", err)
	}
	return s
}

func (s *service) gone() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// exit waits for the end of the service and returns its exit code, -1 after a
// signal.
func (s *service) exit() int {
	s.Helper()
	deadline := time.NewTimer(qualityPatience)
	defer deadline.Stop()
	select {
	case <-s.ended:
	case <-deadline.C:
		_ = s.cmd.Process.Kill()
		s.Fatal("the service does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// kill ends the service without giving it a moment.
func (s *service) kill() {
	s.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	s.exit()
}

// ctx outlives the test, for what is done by its Cleanup too.
func (p *place) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), qualityPatience)
	p.Cleanup(cancel)
	return ctx
}

// work is an open session.
type work struct {
	*service
	session protocol.Session
}

// open opens a new session, or the one of this id.
func (s *service) open(profile, id string) *work {
	s.Helper()
	w, err := s.tryOpen(profile, id)
	if err != nil {
		s.Fatalf("open %s: %v", profile, explain(err))
	}
	return w
}

func (s *service) tryOpen(profile, id string) (*work, error) {
	folder := "file://" + s.folder
	r, err := s.SessionOpen(s.ctx(), protocol.SessionOpenParams{Workspace: &folder, Profile: profile, SessionID: id})
	return &work{s, r.Session}, err
}

// in is the session of w for a test.
func (w *work) in(t *testing.T) *work {
	p, s := *w.place, *w.service
	p.TB = t
	s.place = &p
	return &work{&s, w.session}
}

func (w *work) try(name string, args any, change ...func(*protocol.ToolCallParams)) (protocol.ToolCallResult, error) {
	w.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.Fatal(err)
	}
	params := protocol.ToolCallParams{SessionID: w.session.ID, Name: name, Arguments: raw}
	for _, f := range change {
		f(&params)
	}
	return w.ToolCall(w.ctx(), params)
}

// call calls a tool that must work.
func (w *work) call(name string, args any) protocol.ToolCallResult {
	w.Helper()
	r, err := w.try(name, args)
	if err != nil {
		w.Fatalf("%s: %v", name, explain(err))
	}
	if r.IsError {
		w.Fatalf("%s: %s", name, r.Content[0].Text)
	}
	return r
}

// refused calls a tool that must fail with this kind.
func (w *work) refused(kind protocol.Kind, name string, args any, change ...func(*protocol.ToolCallParams)) *protocol.Error {
	w.Helper()
	r, err := w.try(name, args, change...)
	return w.kind(kind, fmt.Sprintf("%s %v: %s", name, args, r.StructuredContent), err)
}

// kind checks an error.
func (p *place) kind(kind protocol.Kind, what string, err error) *protocol.Error {
	p.Helper()
	var e *protocol.Error
	if !errors.As(err, &e) || e.Kind() != kind {
		p.Fatalf("%s: %v; want %s", what, explain(err), kind)
	}
	return e
}

// explain is an error with what it says beside.
func explain(err error) string {
	var e *protocol.Error
	if errors.As(err, &e) && e.Data != nil {
		return fmt.Sprintf("%s (%s; %s)", e.Message, e.Data.Kind, e.Data.Hint)
	}
	return fmt.Sprint(err)
}

// into decodes the structured content of a result.
func into[T any](w *work, r protocol.ToolCallResult) T {
	w.Helper()
	var v T
	if err := json.Unmarshal(r.StructuredContent, &v); err != nil {
		w.Fatalf("%s: %v", r.StructuredContent, err)
	}
	return v
}

// ran is what bash answers.
type ran struct {
	ExitCode      int    `json:"exit_code"`
	Stdout        string `json:"stdout"`
	Stderr        string `json:"stderr"`
	TimedOut      bool   `json:"timed_out"`
	Promoted      string `json:"promoted_process_id"`
	SandboxDenied bool   `json:"sandbox_denied"`
}

func (w *work) bash(line string) ran {
	w.Helper()
	return into[ran](w, w.call("bash", members{"command": line}))
}

// sh is the output of a command line that must succeed.
func (w *work) sh(line string) string {
	w.Helper()
	r := w.bash(line)
	if r.ExitCode != 0 {
		w.Fatalf("%s: %+v", line, r)
	}
	return r.Stdout
}

// moment is a time in which a command has long done what it has not to wait for: a
// second, and more on a machine that is busy.
func (w *work) moment() time.Duration {
	w.Helper()
	w.sh("true") // the first one may have to start the worker
	began := time.Now()
	w.sh("true")
	return time.Second + 20*time.Since(began)
}

// background starts a process.
func (w *work) background(line string) protocol.Process {
	w.Helper()
	r, err := w.ProcessStart(w.ctx(), protocol.ProcessStartParams{SessionID: w.session.ID, Command: line})
	if err != nil {
		w.Fatalf("start %s: %v", line, explain(err))
	}
	return r.Process
}

func (w *work) named(id string) protocol.ProcessParams {
	return protocol.ProcessParams{SessionID: w.session.ID, ProcessID: id}
}

// process is what the record says now.
func (w *work) process(id string) protocol.Process {
	w.Helper()
	r, err := w.ProcessGet(w.ctx(), w.named(id))
	if err != nil {
		w.Fatalf("process %s: %v", id, explain(err))
	}
	return r.Process
}

// over waits for the end of a process and of its output.
func (w *work) over(id string) protocol.Process {
	w.Helper()
	var p protocol.Process
	w.until("the end of "+id, func() bool {
		r, err := w.ProcessWait(w.ctx(), protocol.ProcessWaitParams{SessionID: w.session.ID, ProcessID: id})
		if err != nil {
			w.Fatalf("wait: %v", explain(err))
		}
		p = r.Process
		return !r.TimedOut && p.OutputClosed
	})
	return p
}

// read reads output from an offset on, waiting for some.
func (w *work) read(id string, offset int64, encoding protocol.Encoding) protocol.ProcessReadResult {
	w.Helper()
	r, err := w.ProcessRead(w.ctx(), protocol.ProcessReadParams{SessionID: w.session.ID, ProcessID: id, Offset: &offset, WaitMs: 10_000, Encoding: encoding})
	if err != nil {
		w.Fatalf("read: %v", explain(err))
	}
	return r
}

// reads waits until the output of a process begins with this text.
func (w *work) reads(id, want string) {
	w.Helper()
	var got string
	w.until("the output "+want, func() bool {
		got = w.read(id, 0, "").Data
		return len(got) >= len(want)
	})
	if !strings.HasPrefix(got, want) {
		w.Fatalf("the output is %q, want %q", got, want)
	}
}

// within runs a command line in the session's container as its user would, from
// outside of the worker.
func (w *work) within(line string) string {
	w.Helper()
	return dockertest.Docker(w.TB, "exec", w.session.EnvironmentID, "bash", "-c", line)
}

// alive reports whether a pid, as the session's commands see it, is a process
// that has not ended.
func (w *work) alive(pid int) bool {
	w.Helper()
	if w.session.Backend == "docker" {
		return w.within(fmt.Sprintf("grep -s '^State:' /proc/%d/status | grep -v Z || true", pid)) != ""
	}
	return running(pid)
}

// running reports whether a process of this machine has not ended.
func running(pid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return err == nil && !bytes.Contains(status, []byte("\nState:\tZ"))
}

// killWorker kills the session's worker, the only one where it is.
func (w *work) killWorker() {
	w.Helper()
	if w.session.Backend == "docker" {
		w.within(`for p in /proc/[0-9]*; do [ "$(cat $p/comm)" = caisson-worker ] && kill -9 ${p#/proc/}; done; true`)
		return
	}
	if err := syscall.Kill(w.worker(), syscall.SIGKILL); err != nil {
		w.Fatal(err)
	}
}
