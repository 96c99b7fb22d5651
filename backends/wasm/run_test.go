package wasm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

func TestRunModule(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	run := func(r backends.ModuleRequest) backends.ModuleResult {
		t.Helper()
		out, err := e.RunModule(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	r := request(t, "echo")
	r.Stdin = []byte(`{"action":"list"}`)
	if out := run(r); string(out.Stdout) != string(r.Stdin) || len(out.Stderr) > 0 || out.ExitCode != 0 {
		t.Errorf("echo: %q %q %d", out.Stdout, out.Stderr, out.ExitCode)
	} else if out.FuelRemaining == 0 || out.FuelRemaining >= e.binding.Profile.MaxFuel || out.Duration <= 0 {
		t.Errorf("echo left %d of %d fuel and took %v", out.FuelRemaining, e.binding.Profile.MaxFuel, out.Duration)
	}
	r.Stdin = []byte(strings.Repeat("large ", 2<<20/6))
	r.MaxOutputBytes = 4 << 20
	e.binding.Profile.MaxOutputBytes = 4 << 20
	if out := run(r); string(out.Stdout) != string(r.Stdin) {
		t.Errorf("%d bytes of %d came back", len(out.Stdout), len(r.Stdin))
	}
	if out := run(request(t, "args", "one", "two words", "")); string(out.Stdout) != `"guest" ["one" "two words" ""]`+"\n" {
		t.Errorf("arguments: %s", out.Stdout)
	}
	if out := run(request(t, "env")); !strings.Contains(string(out.Stdout), "GREETING=hello") || strings.Contains(string(out.Stdout), "PATH=") {
		t.Errorf("environment: %s", out.Stdout)
	}
	if out := run(request(t, "exit", "7")); out.ExitCode != 7 || string(out.Stderr) != "leaving\n" {
		t.Errorf("exit: %d %q", out.ExitCode, out.Stderr)
	}
	if out := run(request(t, "panic")); out.ExitCode != 2 || !strings.Contains(string(out.Stderr), "on purpose") {
		t.Errorf("panic: %d %q", out.ExitCode, out.Stderr)
	}
	if out := run(request(t, "sleep", "1h")); string(out.Stdout) != "true\n" {
		t.Errorf("an hour of a deterministic guest: %s", out.Stdout)
	}
}

// TestStopped is about guests that do not end by themselves: each in its own way.
func TestStopped(t *testing.T) {
	for _, tt := range []struct {
		name    string
		members string
		request func(t *testing.T) backends.ModuleRequest
		kind    tool.Kind
		reason  tool.Reason
		says    string
	}{
		{"fuel", `,"max_fuel":1000000`, func(t *testing.T) backends.ModuleRequest { return written(t, endless()) },
			tool.GuestFailed, tool.OutOfFuel, "its fuel, 1000000 instructions, was spent"},
		{"fuel of Go", `,"max_fuel":100000000`, func(t *testing.T) backends.ModuleRequest { return request(t, "loop") },
			tool.GuestFailed, tool.OutOfFuel, ""},
		{"output", ``, func(t *testing.T) backends.ModuleRequest { return request(t, "output", "2000000000") },
			tool.GuestFailed, tool.OutputLimit, "wrote more than"},
		{"memory", `,"max_memory_pages":16`, func(t *testing.T) backends.ModuleRequest { return written(t, greedy(opUnreachable)) },
			tool.GuestFailed, tool.OutOfMemory, "16 pages"},
		{"memory at the start", `,"max_memory_pages":16`, func(t *testing.T) backends.ModuleRequest { return written(t, handmade(17)) },
			tool.GuestFailed, tool.OutOfMemory, "16 pages"},
		{"memory of Go", `,"max_memory_pages":256`, func(t *testing.T) backends.ModuleRequest { return request(t, "grow") },
			tool.GuestFailed, tool.OutOfMemory, "256 pages"},
		{"stack", ``, func(t *testing.T) backends.ModuleRequest { return written(t, handmade(1, opCall, 1)) },
			tool.GuestFailed, tool.StackOverflow, "too deeply"},
		{"trap", ``, func(t *testing.T) backends.ModuleRequest { return written(t, handmade(1, opUnreachable)) },
			tool.GuestFailed, tool.Trap, "unreachable"},
		{"time", `,"max_execution_time":"300ms","max_fuel":1000000000000`, func(t *testing.T) backends.ModuleRequest { return written(t, endless()) },
			tool.Timeout, "", "after 300ms"},
		{"less time", `,"max_fuel":1000000000000`, func(t *testing.T) backends.ModuleRequest {
			r := request(t, "loop")
			r.Timeout = 300 * time.Millisecond
			return r
		}, tool.Timeout, "", "after 300ms"},
		{"sleep", `,"max_execution_time":"300ms","deterministic":false`, func(t *testing.T) backends.ModuleRequest { return request(t, "sleep", "1h") },
			tool.Timeout, "", "after 300ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := open(t, binding(t, pure(t, tt.members)))
			out, err := e.RunModule(t.Context(), tt.request(t))
			if err == nil {
				t.Fatalf("it ended by itself: %+v", out)
			}
			got := failed(t, err)
			if got.Kind != tt.kind || got.Reason != tt.reason || !strings.Contains(got.Message, tt.says) || got.Hint == "" {
				t.Errorf("%s %q: %v (hint %q)", got.Kind, got.Reason, got, got.Hint)
			}
			if got.FuelRemaining == nil || *got.FuelRemaining > e.binding.Profile.MaxFuel {
				t.Errorf("what was left of its fuel is not told: %v", got.FuelRemaining)
			}
		})
	}
}

// TestRefusedMemory is a guest that was refused memory and lives with it.
func TestRefusedMemory(t *testing.T) {
	e := open(t, binding(t, pure(t, `,"max_memory_pages":16`)))
	out, err := e.RunModule(t.Context(), written(t, greedy(opMemorySize, 0, opCall, 0)))
	if err != nil || out.ExitCode != 16 {
		t.Errorf("it had %d pages (%v)", out.ExitCode, err)
	}
}

// TestSameRemainder is the promise of fuel: what stops is stopped at the same
// instruction, however busy the machine is.
func TestSameRemainder(t *testing.T) {
	e := open(t, binding(t, pure(t, `,"max_fuel":1000000`)))
	loop := written(t, endless())
	ends := request(t, "sum", "5")
	remainders := map[uint64]int{}
	var mu sync.Mutex
	var all sync.WaitGroup
	const runs = 100
	for range runs {
		all.Go(func() {
			_, err := e.RunModule(t.Context(), loop)
			var why *tool.Error
			if !errors.As(err, &why) || why.Reason != tool.OutOfFuel {
				t.Errorf("the loop ended with %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			remainders[*why.FuelRemaining]++
		})
	}
	all.Wait()
	if len(remainders) != 1 {
		t.Errorf("%d runs left these remainders: %v", runs, remainders)
	}
	e2 := open(t, binding(t, pure(t, "")))
	var first backends.ModuleResult
	for i := range 10 {
		out, err := e2.RunModule(t.Context(), ends)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = out
		} else if out.FuelRemaining != first.FuelRemaining || string(out.Stdout) != string(first.Stdout) {
			t.Errorf("run %d left %d, the first %d", i, out.FuelRemaining, first.FuelRemaining)
		}
	}
}

// TestDeterministic compares what two environments show of time, random numbers
// and directories.
func TestDeterministic(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "c", "a"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	world := func(more string) (string, uint64) {
		t.Helper()
		out, err := open(t, binding(t, pure(t, preopen(dir, "")+more))).RunModule(t.Context(), request(t, "world"))
		if err != nil || out.ExitCode != 0 {
			t.Fatal(string(out.Stderr), err)
		}
		return string(out.Stdout), out.FuelRemaining
	}
	one, oneLeft := world("")
	now := time.Now()
	for _, name := range []string{"b", "c", "a"} { // not content
		if err := os.Chtimes(filepath.Join(dir, name), now, now); err != nil {
			t.Fatal(err)
		}
	}
	two, twoLeft := world("")
	if one != two || oneLeft != twoLeft {
		t.Errorf("two runs differ: %d and %d left\n%s\n%s", oneLeft, twoLeft, one, two)
	}
	if a, b := strings.Index(one, "\na "), strings.Index(one, "\nb "); a < 0 || b < a {
		t.Errorf("the directory is not sorted:\n%s", one)
	}
	if free, _ := world(`,"deterministic":false`); free == one {
		t.Error("a guest that need not be deterministic sees the same time and random numbers")
	}
}

// TestCancel ends endless guests of both sorts at once.
func TestCancel(t *testing.T) {
	dir := t.TempDir()
	e := open(t, binding(t, pure(t, preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.RunModule(ctx, request(t, "hold", "/work/running"))
		ended <- err
	}()
	await(t, filepath.Join(dir, "running"))
	pid := e.engine.pid()
	began := time.Now()
	cancel()
	err := <-ended
	if took := time.Since(began); took > cancelGrace {
		t.Errorf("it took %v", took)
	}
	if tool.KindOf(err) != tool.Cancelled {
		t.Errorf("the error is %v", err)
	}
	if _, err := e.RunModule(t.Context(), request(t, "args")); err != nil || e.engine.pid() != pid {
		t.Errorf("the next call: %v, by engine %d after %d", err, e.engine.pid(), pid)
	}
}

// await waits for a file that a guest writes.
func await(t testing.TB, path string) {
	t.Helper()
	w, err := fsnotify.NewWatcher()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := w.Add(filepath.Dir(path)); err != nil {
		t.Fatal(err)
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return // it may have been there before it was watched for
		}
		select {
		case <-w.Events:
		case err := <-w.Errors:
			t.Fatal(err)
		case <-late.C:
			t.Fatalf("%s never came", path)
		}
	}
}

// TestBesideEndless runs short guests while as many run as may at once, most of
// them without an end.
func TestBesideEndless(t *testing.T) {
	e := open(t, binding(t, pure(t, `,"max_fuel":1000000000000,"max_execution_time":"1h"`)))
	loop := written(t, endless())
	loop.Timeout = 500 * time.Millisecond
	short := request(t, "args")
	if _, err := e.RunModule(t.Context(), short); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if _, err := e.RunModule(t.Context(), loop); tool.KindOf(err) != tool.Timeout {
				t.Errorf("the loop ended with %v", err)
			}
		})
	}
	for range 4 {
		if _, err := e.RunModule(t.Context(), short); err != nil {
			t.Error(err)
		}
	}
	all.Wait()
}

// TestModules is about files that are no modules for us.
func TestModules(t *testing.T) {
	e := open(t, binding(t, pure(t, "")))
	other := handmade(1)
	replaced := func(what, by string) []byte { return []byte(strings.Replace(string(other), what, by, 1)) }
	importing := replaced("wasi_snapshot_preview1", "wasi_snapshot_preview9")
	for _, tt := range []struct {
		name   string
		module []byte
		sum    string
		kind   tool.Kind
		says   string
	}{
		{"not wasm", []byte("#!/bin/sh\n"), "", tool.ConfigInvalid, "no valid WebAssembly module"},
		{"component", []byte("\x00asm\x0d\x00\x01\x00"), "", tool.ConfigInvalid, "no valid WebAssembly module"},
		{"empty", nil, "", tool.ConfigInvalid, "no valid WebAssembly module"},
		{"bad body", handmade(1, opDrop), "", tool.ConfigInvalid, "no valid WebAssembly module"},
		{"no command", []byte("\x00asm\x01\x00\x00\x00"), "", tool.ConfigInvalid, "exports no function _start"},
		{"another import", importing, "", tool.Unsupported, `imports "proc_exit" of "wasi_snapshot_preview9"`},
		{"a name for a terminal", replaced("proc_exit", "p\x1b[31m\n\x00z"), "", tool.Unsupported, `"p\x1b[31m\n\x00z"`},
		{"an unknown function", replaced("proc_exit", "proc_fork"), "", tool.Unsupported, `"proc_fork" of WASI preview 1 that is not there`},
		{"another signature", replaced("proc_exit\x00\x00", "proc_exit\x00\x01"), "", tool.Unsupported, `"proc_exit" of WASI preview 1 that is not there, or not like that`},
		{"another file", other, strings.Repeat("0", 64), tool.ConfigInvalid, "is not the one that was meant"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := written(t, tt.module)
			if tt.sum != "" {
				r.SHA256 = tt.sum
			}
			_, err := e.RunModule(t.Context(), r)
			if err == nil {
				t.Fatal("it ran")
			}
			if got := failed(t, err); got.Kind != tt.kind || !strings.Contains(got.Message, tt.says) || got.Path != r.Path {
				t.Errorf("%s: %v (path %q)", got.Kind, got, got.Path)
			}
		})
	}
	r := written(t, handmade(1, opLoop, noResult, opEnd)) // which nothing has compiled
	if err := os.Remove(r.Path); err != nil {
		t.Fatal(err)
	}
	if _, err := e.RunModule(t.Context(), r); tool.KindOf(err) != tool.ConfigInvalid {
		t.Errorf("a module that is gone: %v", err)
	}
	r.Path = "relative.wasm"
	if _, err := e.RunModule(t.Context(), r); tool.KindOf(err) != tool.InvalidParams {
		t.Errorf("a relative path: %v", err)
	}
	r.Mode = tool.Unconfined
	if _, err := e.RunModule(t.Context(), r); tool.KindOf(err) != tool.Denied {
		t.Errorf("a mode above the ceiling: %v", err)
	}
}

// TestFiles has a Go program do all that package os can do, in both modes.
func TestFiles(t *testing.T) {
	for _, more := range []string{"", `,"deterministic":false`} {
		t.Run(fmt.Sprintf("%q", more), func(t *testing.T) {
			dir := t.TempDir()
			e := open(t, binding(t, pure(t, preopen(dir, "")+more)))
			args := []string{"files", "/work"}
			if more != "" {
				args = append(args, "times")
			}
			out, err := e.RunModule(t.Context(), request(t, args...))
			if err != nil || string(out.Stdout) != "fine\n" {
				t.Errorf("%s\n%s\n%v", out.Stdout, out.Stderr, err)
			}
		})
	}
}

// TestEscape has a guest try to leave its directory.
func TestEscape(t *testing.T) {
	base := t.TempDir()
	dir, secret := filepath.Join(base, "dir"), filepath.Join(base, "secret")
	for _, err := range []error{
		os.Mkdir(dir, 0o755), os.WriteFile(secret, []byte("secret"), 0o644), os.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o644),
		os.Symlink("../secret", filepath.Join(dir, "leak")), os.Symlink(base, filepath.Join(dir, "out")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	e := open(t, binding(t, pure(t, preopen(dir, ""))))
	out, err := e.RunModule(t.Context(), request(t, "escape", "/work", "secret"))
	if err != nil || len(out.Stdout)+len(out.Stderr) > 0 || out.ExitCode != 0 {
		t.Errorf("%s%s (%v)", out.Stdout, out.Stderr, err)
	}
	if got, err := os.ReadFile(secret); err != nil || string(got) != "secret" {
		t.Errorf("the secret is %q now (%v)", got, err)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) != 2 {
		t.Errorf("beside the directory there is %v (%v)", entries, err)
	}
}

// TestDirectories is about several directories, one of them read-only.
func TestDirectories(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	for _, dir := range []string{one, two} {
		if err := os.WriteFile(filepath.Join(dir, "a"), []byte(filepath.Base(dir)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e := open(t, binding(t, pure(t, fmt.Sprintf(`,"preopens":["/work::%s",{"guest":"/data","host":%q,"readonly":true},"/more::%s"]`, one, two, t.TempDir()))))
	for _, tt := range []struct {
		args []string
		mode tool.Mode
		says string
	}{
		{[]string{"cat", "/work/a", "/data/a"}, "", filepath.Base(one) + filepath.Base(two)},
		{[]string{"cat", "a"}, "", filepath.Base(one)},
		{[]string{"cwd"}, "", "/work\n"},
		{[]string{"write", "/data/b", "x"}, "", "open /data/b: Read-only file system\n"},
		{[]string{"write", "/work/b", "x"}, "", ""},
		{[]string{"write", "/work/c", "x"}, tool.ReadOnly, "open /work/c: Read-only file system\n"},
		{[]string{"move", "/work/b", "/more/b"}, "", "rename /work/b /more/b: Cross-device link\n"},
		{[]string{"many", "/work/a"}, "", "Too many open files\n"},
		{[]string{"ls", "/"}, "", "open /: Bad file number\n"},
	} {
		r := request(t, tt.args...)
		r.Mode = tt.mode
		out, err := e.RunModule(t.Context(), r)
		if got := string(out.Stdout) + string(out.Stderr); err != nil || !strings.HasSuffix(got, tt.says) {
			t.Errorf("%v: %q (%v)", tt.args, got, err)
		}
	}
}

// TestLastWords: what a guest said last is what happened, not what to do about it.
func TestLastWords(t *testing.T) {
	for said, want := range map[string]string{
		"":             "",
		"a\nb\n":       "b",
		"a\xff\n\n \n": "a\ufffd",
		"thread 'main' panicked at m.rs:4:26:\noh no\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n": "oh no",
		strings.Repeat("é", maxLastWords): strings.Repeat("é", maxLastWords/2) + "…",
	} {
		if got := lastWords([]byte(said)); got != want {
			t.Errorf("of %q: %q", said, got)
		}
	}
}
