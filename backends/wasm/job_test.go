package wasm

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// jobs opens an environment whose one module is the Go guest.
func jobs(t testing.TB, members string) *environment {
	t.Helper()
	return open(t, binding(t, pure(t, fmt.Sprintf(`,"modules":[%q]`, guest(t))+members)))
}

// collected are the files that a job left, by path.
func collected(t testing.TB, e *environment, files []backends.JobFile) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, f := range files {
		content, err := e.Export(t.Context(), f.Token)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(content)
		if err != nil || int64(len(data)) != f.Size {
			t.Errorf("%s: %d bytes of %d (%v)", f.Path, len(data), f.Size, err)
		}
		if err := content.Close(); err != nil {
			t.Error(err)
		}
		all[f.Path] = string(data)
	}
	return all
}

func TestJob(t *testing.T) {
	e := jobs(t, "")
	r := backends.JobRequest{
		ID: "job", Argv: []string{"guest", "write", "out.txt", "written"},
		Inputs: []backends.JobInput{{Path: "in/a.txt", Data: []byte("input")}},
	}
	out, err := e.RunJob(t.Context(), r)
	if err != nil || out.ExitCode != 0 {
		t.Fatal(string(out.Stderr), err)
	}
	if got := collected(t, e, out.Files); len(got) != 1 || got["out.txt"] != "written" {
		t.Errorf("collected %v", got)
	}
	if out.FuelRemaining == nil || *out.FuelRemaining == 0 {
		t.Error("what was left of the fuel is not told")
	}
	for _, tt := range []struct {
		name  string
		r     backends.JobRequest
		check func(backends.JobResult) bool
	}{
		{"input by a relative path", backends.JobRequest{Argv: []string{"guest.wasm", "cat", "in/a.txt", "/job/in/a.txt", "/in/a.txt"}, Inputs: r.Inputs},
			func(o backends.JobResult) bool { return string(o.Stdout) == "inputinputinput" }},
		{"its directory", backends.JobRequest{Argv: []string{guest(t), "cwd"}},
			func(o backends.JobResult) bool { return string(o.Stdout) == "/job\n" }},
		{"stdin and variables", backends.JobRequest{Argv: []string{"guest", "echo"}, Stdin: []byte("in"), Environment: map[string]string{"A": "1"}},
			func(o backends.JobResult) bool { return string(o.Stdout) == "in" }},
		{"variables", backends.JobRequest{Argv: []string{"guest", "env"}, Environment: map[string]string{"A": "1"}},
			func(o backends.JobResult) bool {
				return strings.Contains(string(o.Stdout), "A=1\n") && strings.Contains(string(o.Stdout), "GREETING=hello\n")
			}},
		{"script", backends.JobRequest{Script: &backends.JobScript{Interpreter: "guest", Source: "the source"}},
			func(o backends.JobResult) bool {
				return o.ExitCode == 64 && strings.Contains(string(o.Stderr), "unknown: /job/script")
			}},
		{"exit code", backends.JobRequest{Argv: []string{"guest", "exit", "3"}},
			func(o backends.JobResult) bool { return o.ExitCode == 3 && o.Signal == "" }},
		{"fuel", backends.JobRequest{Argv: []string{"guest", "hold", "part"}},
			func(o backends.JobResult) bool {
				return o.ExitCode == -1 && o.Signal == "outOfFuel" && len(o.Files) == 1 && strings.Contains(string(o.Stderr), "its fuel")
			}},
		{"memory", backends.JobRequest{Argv: []string{"guest", "grow"}, Memory: 16 << 20},
			func(o backends.JobResult) bool { return o.Signal == "outOfMemory" }},
		{"output", backends.JobRequest{Argv: []string{"guest", "output", "100000"}, MaxOutputBytes: 1000},
			func(o backends.JobResult) bool {
				return o.Truncated && len(o.Stdout) > 900 && len(o.Stdout) <= 1000 && o.ExitCode == 0
			}},
		{"globs", backends.JobRequest{Argv: []string{"guest", "files", "."}, Collect: []string{"file-00*"}},
			func(o backends.JobResult) bool { return len(o.Files) == 10 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.ID = "job"
			out, err := e.RunJob(t.Context(), tt.r)
			if err != nil || !tt.check(out) {
				t.Errorf("%.200q %.200q, exit code %d, signal %q, %d files (%v)", out.Stdout, out.Stderr, out.ExitCode, out.Signal, len(out.Files), err)
			}
			collected(t, e, out.Files)
		})
	}
	if left, err := os.ReadDir(jobsDir(e.binding)); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	for _, tt := range []struct {
		r    backends.JobRequest
		kind tool.Kind
	}{
		{backends.JobRequest{Argv: []string{"bash", "-c", "true"}}, tool.Unsupported},
		{backends.JobRequest{Argv: []string{"guest"}, CPUTime: time.Second}, tool.Unsupported},
		{backends.JobRequest{Argv: []string{"guest"}, CWD: "/work"}, tool.Unsupported},
		{backends.JobRequest{Argv: []string{"guest"}, Mode: tool.Unconfined}, tool.Denied},
		{backends.JobRequest{}, tool.InvalidParams},
		{backends.JobRequest{Argv: []string{"guest"}, Inputs: []backends.JobInput{{Path: "../x"}}}, tool.InvalidParams},
	} {
		if _, err := e.RunJob(t.Context(), tt.r); tool.KindOf(err) != tt.kind {
			t.Errorf("%+v: %v", tt.r, err)
		}
	}
}

// TestJobInDirectory runs jobs beside and in the profile's directories.
func TestJobInDirectory(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(one, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(one, "sub", "a"), []byte("a"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := jobs(t, fmt.Sprintf(`,"preopens":["/work::%s","/data::%s:ro"]`, one, two))
	for _, tt := range []struct {
		name  string
		r     backends.JobRequest
		check func(backends.JobResult) bool
	}{
		{"reads the directory", backends.JobRequest{Argv: []string{"guest", "cat", "/work/sub/a"}},
			func(o backends.JobResult) bool { return string(o.Stdout) == "a" }},
		{"writes the directory", backends.JobRequest{Argv: []string{"guest", "write", "/work/b", "b"}},
			func(o backends.JobResult) bool { return o.ExitCode == 0 && len(o.Files) == 0 }},
		{"read-only", backends.JobRequest{Argv: []string{"guest", "write", "/work/c", "c"}, Mode: tool.ReadOnly},
			func(o backends.JobResult) bool { return strings.Contains(string(o.Stderr), "Read-only") }},
		{"its own directory in read-only", backends.JobRequest{Argv: []string{"guest", "write", "c", "c"}, Mode: tool.ReadOnly},
			func(o backends.JobResult) bool { return o.ExitCode == 0 && len(o.Files) == 1 }},
		{"between the names of its directory", backends.JobRequest{Argv: []string{"guest", "move", "/job/in", "/moved"}, Inputs: []backends.JobInput{{Path: "in"}}},
			func(o backends.JobResult) bool { return string(o.Stdout) == "<nil>\n" && len(o.Files) == 1 }},
		{"works there", backends.JobRequest{Argv: []string{"guest", "cat", "a", "/work/sub/a", "/a"}, CWD: "sub"},
			func(o backends.JobResult) bool { return string(o.Stdout) == "aaa" && len(o.Files) == 0 }},
		{"works there with inputs", backends.JobRequest{
			Argv: []string{"guest", "cat", "new"}, CWD: "/work/sub", Inputs: []backends.JobInput{{Path: "new", Data: []byte("new")}}, Collect: []string{"a"},
		}, func(o backends.JobResult) bool { return string(o.Stdout) == "new" && len(o.Files) == 1 }},
		{"a script there", backends.JobRequest{Script: &backends.JobScript{Interpreter: "guest", Source: "x"}, CWD: "sub"},
			func(o backends.JobResult) bool { return strings.Contains(string(o.Stderr), "unknown: /job/script") }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.ID = "job"
			out, err := e.RunJob(t.Context(), tt.r)
			if err != nil || !tt.check(out) {
				t.Errorf("%.200q %.200q, exit code %d, signal %q, %d files (%v)", out.Stdout, out.Stderr, out.ExitCode, out.Signal, len(out.Files), err)
			}
			collected(t, e, out.Files)
		})
	}
	var names []string
	entries, err := os.ReadDir(filepath.Join(one, "sub"))
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if err != nil || !slices.Equal(names, []string{"a", "new"}) {
		t.Errorf("in the directory are %v (%v)", names, err)
	}
	if _, err := e.RunJob(t.Context(), backends.JobRequest{Argv: []string{"guest"}, CWD: "/data"}); tool.KindOf(err) != tool.Unsupported {
		t.Error(err)
	}
}

// TestJobTimedOut stops a job that takes too long; what it did comes back.
func TestJobTimedOut(t *testing.T) {
	e := jobs(t, `,"max_fuel":1000000000000000,"max_execution_time":"1h"`)
	var took time.Duration
	for range 2 { // the first one may have to compile it
		began := time.Now()
		if out, err := e.RunJob(t.Context(), backends.JobRequest{ID: "short", Argv: []string{"guest", "args"}}); err != nil || out.ExitCode != 0 {
			t.Fatalf("%+v (%v)", out, err)
		}
		took = time.Since(began)
	}
	out, err := e.RunJob(t.Context(), backends.JobRequest{
		ID: "job", Argv: []string{"guest", "hold", "part"}, Timeout: time.Second + 20*took, // a busy machine takes its time to begin it
	})
	if err != nil || !out.TimedOut || out.ExitCode != -1 {
		t.Errorf("%+v (%v)", out, err)
	}
	if got := collected(t, e, out.Files); got["part"] != "running" {
		t.Errorf("collected %v", got)
	}
}

// TestJobCancelled ends a job that runs; nothing of it is left.
func TestJobCancelled(t *testing.T) {
	dir := t.TempDir()
	e := jobs(t, preopen(dir, "")+`,"max_fuel":1000000000000000,"max_execution_time":"1h"`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := e.RunJob(ctx, backends.JobRequest{ID: "job", Argv: []string{"guest", "hold", "/work/running"}})
		ended <- err
	}()
	await(t, filepath.Join(dir, "running"))
	cancel()
	if err := <-ended; tool.KindOf(err) != tool.Cancelled {
		t.Errorf("it ended with %v", err)
	}
	if left, err := os.ReadDir(jobsDir(e.binding)); err == nil && len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
