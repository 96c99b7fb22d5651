//go:build unix

package wasm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/program"
	"github.com/caisson-dev/caisson/backends/tool"
	"github.com/caisson-dev/caisson/backends/wasm/engine"
)

// holding starts a guest that never ends, in a fresh environment.
func holding(t *testing.T) (e *environment, ended <-chan error) {
	t.Helper()
	dir := t.TempDir()
	e = open(t, binding(t, pure(t, preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`)))
	result := make(chan error, 1)
	go func() {
		_, err := e.RunModule(context.Background(), request(t, "hold", "/work/running"))
		result <- err
	}()
	await(t, filepath.Join(dir, "running"))
	return e, result
}

// TestEngineKilled kills the engine while a guest runs.
func TestEngineKilled(t *testing.T) {
	e, ended := holding(t)
	pid := e.engine.pid()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	err := <-ended
	if got := failed(t, err); got.Kind != tool.OutcomeUnknown || !strings.Contains(got.Message, "signal: killed") {
		t.Errorf("%s: %v", got.Kind, got)
	}
	out, err := e.RunModule(t.Context(), request(t, "args"))
	if err != nil || e.engine.pid() == pid || out.ExitCode != 0 {
		t.Errorf("the next call: %v", err)
	}
}

// TestUncompiled: a module that is compiled for ever is given up. The engine and the
// guests in it go on, and others are compiled meanwhile.
func TestUncompiled(t *testing.T) {
	if _, err := open(t, binding(t, pure(t, ""))).RunModule(t.Context(), request(t, "args")); err != nil {
		t.Fatal(err) // from now on it is in the cache
	}
	dir := t.TempDir()
	e := open(t, binding(t, pure(t, preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`)))
	e.engine.setup.MaxCompile = int64(2 * time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.RunModule(ctx, request(t, "hold", "/work/running"))
		ended <- err
	}()
	await(t, filepath.Join(dir, "running"))
	pid := e.engine.pid()
	_, err := e.RunModule(t.Context(), written(t, tangled()))
	if got := failed(t, err); got.Kind != tool.ConfigInvalid || !strings.Contains(got.Message, "not compiled within 2s") || got.Hint == "" {
		t.Errorf("%s: %v", got.Kind, got)
	}
	if _, err := e.RunModule(t.Context(), request(t, "args")); err != nil || e.engine.pid() != pid {
		t.Errorf("the next call: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("a guest beside it ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("the guest beside it: %v", err)
	}
}

// TestUncompiledWithoutCache: where nothing can be kept the engine itself compiles. One
// that cannot stop it gets no more calls, and ends when its guests have.
func TestUncompiledWithoutCache(t *testing.T) {
	o := options(t)
	o.CacheDir = ""
	opened, err := New(o).Open(t.Context(), binding(t, pure(t, `,"max_fuel":1000000000000000,"max_execution_time":"1h"`)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Detach(t.Context())
	e := opened.(*environment)
	e.engine.setup.MaxCompile = int64(time.Second)
	fine := written(t, handmade(1))
	if _, err := e.RunModule(t.Context(), fine); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended, beside := make(chan error, 1), written(t, endless())
	go func() {
		_, err := e.RunModule(ctx, beside)
		ended <- err
	}()
	pid := e.engine.pid()
	_, err = e.RunModule(t.Context(), written(t, tangled()))
	if got := failed(t, err); got.Kind != tool.ConfigInvalid || !strings.Contains(got.Message, "not compiled within 1s") {
		t.Errorf("%s: %v", got.Kind, got)
	}
	if _, err := e.RunModule(t.Context(), fine); err != nil || e.engine.pid() == pid {
		t.Errorf("the next call: %v", err)
	}
	select {
	case err := <-ended:
		t.Errorf("a guest beside it ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; err == nil { // how, depends on how busy the compiler keeps the engine
		t.Error("a guest that never ends has ended")
	}
	gone(t, pid)
}

// TestPipeIsNoModule: nobody waits for the writer of a pipe that a profile names.
func TestPipeIsNoModule(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.wasm")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	result := make(chan error, 1)
	go func() {
		_, err := (&hashes{}).of(pipe)
		result <- err
	}()
	select {
	case err := <-result:
		if tool.KindOf(err) != tool.ConfigInvalid {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("it is still being opened")
	}
}

// TestDied is what is made of how an engine ended.
func TestDied(t *testing.T) {
	for text, want := range map[string]tool.Kind{
		"": tool.OutcomeUnknown, "panic: something\n\ngoroutine 1": tool.OutcomeUnknown,
		"fatal error: runtime: out of memory\n\nruntime stack:": tool.GuestFailed,
		"runtime: mmap: cannot allocate memory":                 tool.GuestFailed,
	} {
		p, err := program.Start(program.Options{Argv: []string{"sh", "-c", `printf %s "$1" >&2; exit 2`, "sh", text}, Stderr: io.Discard, Grace: patience})
		if err != nil {
			t.Fatal(err)
		}
		<-p.Exited()
		r := &running{program: p, said: &engine.Said{Max: maxSaid}}
		if _, err := r.said.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(text, "\n")
		if got := failed(t, r.died(io.EOF)); got.Kind != want || !strings.Contains(got.Message, first) || got.Hint == "" {
			t.Errorf("%q: %s: %v", text, got.Kind, got)
		}
		_ = p.Close() // it has ended with a code
	}
}

// TestEngineKilledIdle kills the engine while nothing runs: nobody is told.
func TestEngineKilledIdle(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	for range 3 {
		if _, err := e.RunModule(t.Context(), written(t, handmade(1))); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(e.engine.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-e.engine.current.client.Done()
	}
}

// TestDetach ends a guest that runs, and its engine.
func TestDetach(t *testing.T) {
	e, ended := holding(t)
	pid := e.engine.pid()
	if err := e.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; tool.KindOf(err) != tool.Cancelled && tool.KindOf(err) != tool.OutcomeUnknown {
		t.Errorf("the call ended with %v", err)
	}
	gone(t, pid)
	if _, err := e.RunModule(t.Context(), request(t, "args")); tool.KindOf(err) != tool.Cancelled {
		t.Errorf("a call afterwards: %v", err)
	}
}

// TestIdle ends the engine after the profile's lifetime, and starts another one.
func TestIdle(t *testing.T) {
	at := binding(t, pure(t, ""))
	at.Profile.Lifetime = 50 * time.Millisecond
	e := open(t, at)
	r := written(t, handmade(1))
	if _, err := e.RunModule(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if pid := e.engine.pid(); pid != 0 { // it may be over already
		gone(t, pid)
	}
	if pid := e.engine.pid(); pid != 0 {
		t.Errorf("the next call would go to engine %d", pid)
	}
	if _, err := e.RunModule(t.Context(), r); err != nil {
		t.Error(err)
	}
}

// service starts a service whose guest runs, and returns it with the process id of
// its engine.
func service(t *testing.T) (*exec.Cmd, int) {
	t.Helper()
	dir := t.TempDir()
	return serviceWith(t, map[string]any{
		"Binding": binding(t, pure(t, preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`)),
		"Request": request(t, "hold", "/work/running"), "Running": filepath.Join(dir, "running"),
	})
}

// serviceWith is service for what it is told to run.
func serviceWith(t *testing.T, what map[string]any) (*exec.Cmd, int) {
	t.Helper()
	what["Engine"], what["Cache"] = options(t).Executable, options(t).CacheDir
	input, err := json.Marshal(what)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "service.json")
	if err := os.WriteFile(file, input, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "service", file)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err, cmd.Process.Kill(), cmd.Wait())
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return cmd, pid
}

// TestServiceKilledInJob kills a service while a job runs: a prune lists the job's
// directory and removes it, and does neither while the job runs.
func TestServiceKilledInJob(t *testing.T) {
	dir := t.TempDir()
	at := binding(t, pure(t, fmt.Sprintf(`,"modules":[%q]`, guest(t))+preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`))
	cmd, pid := serviceWith(t, map[string]any{
		"Binding": at, "Running": filepath.Join(dir, "running"),
		"Job": backends.JobRequest{ID: "job", Argv: []string{"guest", "hold", "/work/running"}},
	})
	prune := func(dry bool) []backends.Resource {
		t.Helper()
		found, err := New(Options{}).Prune(t.Context(), backends.PruneOptions{Bound: []backends.Binding{at}, DryRun: dry})
		if err != nil {
			t.Error(err)
		}
		return found
	}
	if found := prune(false); len(found) != 0 {
		t.Errorf("of a job that runs it found %v", found)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	gone(t, pid)
	for range 2 {
		if found := prune(true); len(found) != 1 || filepath.Dir(found[0].ID) != jobsDir(at) || found[0].Session != at.Session {
			t.Errorf("a dry run found %+v", found)
		}
	}
	if found := prune(false); len(found) != 1 {
		t.Errorf("it found %+v", found)
	}
	if left, err := os.ReadDir(jobsDir(at)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("left %v, %v", left, err)
	}
}

// TestServiceKilled kills a service while its guest runs: the engine, which has
// nobody to answer to, goes with it.
func TestServiceKilled(t *testing.T) {
	cmd, pid := service(t)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	gone(t, pid)
}

// TestCache compiles once for all services of a user.
func TestCache(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	r := written(t, handmade(1))
	run := func() (problem string, err error) {
		t.Helper()
		o := options(t)
		o.CacheDir = cache
		e, err := New(o).Open(t.Context(), binding(t, pure(t, "")), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Detach(t.Context())
		_, err = e.(*environment).RunModule(t.Context(), r)
		return e.(*environment).engine.cacheProblem(), err
	}
	if problem, err := run(); problem != "" || err != nil {
		t.Fatal(problem, err)
	}
	kept, err := filepath.Glob(filepath.Join(cache, "*-meter*", r.SHA256+".wasm"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	for _, dir := range []string{cache, filepath.Dir(kept[0])} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v (%v)", dir, info, err)
		}
	}
	// What is in the cache is believed: the module itself is not looked at again.
	if err := os.Remove(r.Path); err != nil {
		t.Fatal(err)
	}
	if problem, err := run(); problem != "" || err != nil {
		t.Error(problem, err)
	}
	// A directory that others can use is not.
	if err := os.Chmod(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	problem, err := run()
	if !strings.Contains(problem, "others must have no rights there") {
		t.Errorf("a cache that others can read: %q", problem)
	}
	if tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("it was used: %v", err)
	}
}

func TestPrune(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "cache")
	b := New(Options{CacheDir: cache})
	if found, err := b.Prune(t.Context(), backends.PruneOptions{}); err != nil || len(found) > 0 {
		t.Fatal(found, err)
	}
	old, used := filepath.Join(cache, "v0.0.1-meter0"), filepath.Join(cache, engine.CacheVersion())
	fresh := filepath.Join(cache, "v9.9.9-meter9")
	long := time.Now().Add(-2 * staleAge)
	for _, dir := range []string{old, used, fresh} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if dir != fresh {
			if err := os.Chtimes(dir, long, long); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, dry := range []bool{true, false} {
		found, err := b.Prune(t.Context(), backends.PruneOptions{DryRun: dry})
		if err != nil || len(found) != 1 || found[0].ID != old || found[0].Kind != "cache" {
			t.Fatal(found, err)
		}
		if _, err := os.Stat(old); (err == nil) != dry {
			t.Errorf("dry run %v: %v", dry, err)
		}
	}
	for _, dir := range []string{used, fresh} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
}

func TestCheck(t *testing.T) {
	dir, module := t.TempDir(), written(t, handmade(1)).Path
	members := fmt.Sprintf(`,"modules":[%q],"preopens":["/work::%s:ro","/folder::${workspaceFolder}"]`, module, dir)
	o := options(t)
	o.Log = slog.New(slog.DiscardHandler)
	h := New(o).Check(t.Context(), pure(t, members))
	if !h.OK || len(h.Checks) != 7 || h.Duration <= 0 {
		t.Errorf("%+v", h)
	}
	h = New(o).Check(t.Context(), pure(t, `,"modules":["/none/module.wasm"],"preopens":["/work::/none","/file::`+module+`"]`))
	bad := map[string]bool{}
	for _, c := range h.Checks {
		bad[c.Name] = !c.OK && c.Hint != "" && c.Detail != ""
	}
	if h.OK || !bad["directory /work"] || !bad["directory /file"] || !bad["module module"] || bad["engine"] {
		t.Errorf("%+v", h)
	}
	o.Executable = filepath.Join(dir, "none")
	if h = New(o).Check(t.Context(), pure(t, "")); h.OK || h.Checks[1].OK || h.Checks[1].Hint == "" {
		t.Errorf("%+v", h)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no time"))
	if h = New(options(t)).Check(ctx, pure(t, "")); h.OK {
		t.Errorf("without time: %+v", h)
	}
}
