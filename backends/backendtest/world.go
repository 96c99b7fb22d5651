package backendtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/tool"
)

// secret is the value of a variable that is handed to every environment and
// must be seen by commands only.
const (
	secretName = "CAISSON_TEST_SECRET"
	secret     = "s3cr3t-vAlue-of-the-suite"
)

// world is one test with its binding and, once opened, its environment.
type world struct {
	*testing.T
	h       Harness
	backend backends.Backend
	// last is what the environment is removed with: backends that are made in the
	// course of a test are closed before that.
	last    backends.Backend
	binding backends.Binding
	env     backends.Environment
	fs      backends.FileSystem
	// mode is what the environment's calls get that ask for nothing.
	mode tool.Mode
	// What a test has ended itself is not ended again.
	shut, removed bool
}

func newWorld(t *testing.T, h Harness) *world {
	t.Helper()
	mode := tool.Standard
	if h.Lacks.Landlock != "" {
		mode = tool.Unconfined
	}
	return newWorldWith(t, h, mode, mode)
}

// newWorldWith is newWorld with permission modes of the test's own.
func newWorldWith(t *testing.T, h Harness, mode, ceiling tool.Mode) *world {
	t.Helper()
	w := &world{T: t, h: h, mode: mode, backend: h.Backend(t)}
	w.last = w.backend
	w.binding = backends.Binding{
		Session:     "suite-" + random(6),
		Environment: "caisson-" + random(16),
		Profile:     h.Profile(t, mode, ceiling),
		StateDir:    t.TempDir(),
		RuntimeDir:  shortDir(t),
		Store:       "store-" + random(8),
		Secrets: backends.Secrets{
			Token: random(32),
			Environment: map[string]string{
				secretName:        secret,
				"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
				"GIT_COMMITTER_NAME": "C", "GIT_COMMITTER_EMAIL": "c@example.org",
			},
		},
	}
	if h.WorkspaceFolder {
		w.binding.WorkspaceFolder = t.TempDir()
	}
	t.Cleanup(w.cleanup)
	return w
}

func random(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never fails, as documented
	return hex.EncodeToString(b)
}

// shortDir is a temporary directory whose path leaves room for a socket's.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cbt") //nolint:usetesting // t.TempDir is too long for a socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// open opens the world's environment, which must work.
func (w *world) open() {
	w.Helper()
	env, err := w.tryOpen(w.backend)
	if err != nil {
		w.Fatalf("open: %v", describe(err))
	}
	w.use(env)
}

func (w *world) tryOpen(b backends.Backend) (backends.Environment, error) {
	ctx, cancel := context.WithTimeout(w.Context(), patience)
	defer cancel()
	env, err := b.Open(ctx, w.binding, nil)
	if err == nil {
		w.binding.Provisioned = true
	}
	return env, err
}

func (w *world) use(env backends.Environment) {
	w.Helper()
	fs, ok := env.(backends.FileSystem)
	if !ok {
		w.Fatal("the environment offers no file system to people")
	}
	w.env, w.fs = env, fs
}

// cleanup ends the environment and checks that nothing of it is left.
func (w *world) cleanup() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.Context()), patience)
	defer cancel()
	if w.env != nil {
		w.shutdown(ctx)
		if err := w.env.Detach(ctx); err != nil {
			w.Errorf("detach: %v", describe(err))
		}
	}
	w.remove(ctx)
}

func (w *world) shutdown(ctx context.Context) {
	if w.shut {
		return
	}
	w.shut = true
	if err := w.env.Shutdown(ctx); err != nil {
		w.Errorf("shutdown: %v", describe(err))
	}
}

func (w *world) remove(ctx context.Context) {
	if !w.removed {
		if err := w.last.Remove(ctx, w.binding); err != nil {
			w.Errorf("remove: %v", describe(err))
		}
		w.removed = true
	}
	w.gone(ctx)
}

// gone waits until nothing of the environment is left.
func (w *world) gone(ctx context.Context) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		left := w.h.Leftovers(w.T, w.binding)
		if len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			w.Errorf("left of the environment: %v", left)
			return
		}
	}
}

// until waits until ok reports true.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			w.Fatalf("waited %v for this in vain: %s", patience, what)
		}
	}
}

// moment is a time in which a command has long done what it has not to wait for: a
// second, and more on a machine that is busy.
func (w *world) moment() time.Duration {
	w.Helper()
	w.sh("true") // the first one may have to start the worker
	began := time.Now()
	w.sh("true")
	return time.Second + 20*time.Since(began)
}

// try calls a tool.
func (w *world) try(name string, args any) (tool.Result, error) {
	w.Helper()
	return w.request(w.Context(), tool.Request{Name: name}, args)
}

// request calls a tool as r says, with args as its arguments. The id is filled in.
func (w *world) request(ctx context.Context, r tool.Request, args any) (tool.Result, error) {
	w.Helper()
	raw, ok := args.(json.RawMessage)
	if !ok {
		var err error
		if raw, err = json.Marshal(args); err != nil {
			w.Fatal(err)
		}
	}
	r.ID, r.Arguments = random(8), raw
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return w.env.Call(ctx, r)
}

// call calls a tool, which must work.
func (w *world) call(name string, args any) tool.Result {
	w.Helper()
	res, err := w.try(name, args)
	if err != nil {
		w.Fatalf("%s %s: %v", name, brief(args), describe(err))
	}
	if res.IsError {
		w.Fatalf("%s %s: %s", name, brief(args), text(res))
	}
	return res
}

// into is call with the structured content decoded.
func into[T any](w *world, name string, args any) T {
	w.Helper()
	return decode[T](w, w.call(name, args))
}

func decode[T any](w *world, res tool.Result) T {
	w.Helper()
	var v T
	if err := json.Unmarshal(res.StructuredContent, &v); err != nil {
		w.Fatalf("the structured content %s: %v", brief(res.StructuredContent), err)
	}
	return v
}

// refused calls a tool that must refuse: an error of one of the kinds, or a
// result that is an error. It returns what was said.
func (w *world) refused(name string, args any, kinds ...tool.Kind) string {
	w.Helper()
	return w.refusedRequest(tool.Request{Name: name}, args, kinds...)
}

func (w *world) refusedRequest(r tool.Request, args any, kinds ...tool.Kind) string {
	w.Helper()
	res, err := w.request(w.Context(), r, args)
	switch {
	case err == nil && !res.IsError:
		w.Errorf("%s %s was not refused: %s", r.Name, brief(args), brief(res.StructuredContent))
	case err == nil:
		return text(res)
	case !slices.Contains(kinds, tool.KindOf(err)):
		w.Errorf("%s %s: %v; want one of %v", r.Name, brief(args), describe(err), kinds)
	}
	return describe(err)
}

// refusal checks that err is of one of the kinds and names word.
func (w *world) refusal(what string, err error, word string, kinds ...tool.Kind) {
	w.Helper()
	if err == nil || !slices.Contains(kinds, tool.KindOf(err)) {
		w.Errorf("%s: %v; want one of %v", what, describe(err), kinds)
	} else if !strings.Contains(strings.ToLower(describe(err)), strings.ToLower(word)) {
		w.Errorf("%s: %v; want it to name %q", what, describe(err), word)
	}
}

// text is the text of a result.
func text(res tool.Result) string {
	var b strings.Builder
	for _, p := range res.Content {
		b.WriteString(p.Text)
	}
	return b.String()
}

// describe is an error with its kind and hint.
func describe(err error) string {
	if err == nil {
		return "no error"
	}
	var e *tool.Error
	if errors.As(err, &e) {
		return fmt.Sprintf("%s: %v (%s)", e.Kind, err, e.Hint)
	}
	return fmt.Sprintf("%v (without a kind)", err)
}

// brief is the head of a value as JSON.
func brief(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(raw) > 300 {
		raw = append(raw[:300:300], "…"...)
	}
	return string(raw)
}

// write and read move whole files as people do, which every size fits.
func (w *world) write(name string, data []byte) {
	w.Helper()
	if _, err := w.fs.WriteFile(w.Context(), name, data); err != nil {
		w.Fatalf("write %s: %v", name, describe(err))
	}
}

func (w *world) read(name string) []byte {
	w.Helper()
	data, err := w.fs.ReadFile(w.Context(), name, 0, -1)
	if err != nil {
		w.Fatalf("read %s: %v", name, describe(err))
	}
	return data
}

// holds checks what a file holds.
func (w *world) holds(name string, want []byte) {
	w.Helper()
	if got := w.read(name); !bytes.Equal(got, want) {
		w.Errorf("%s holds %d bytes, want %d; they differ at %d", name, len(got), len(want), differ(got, want))
	}
}

func differ(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// exists reports whether there is such a file.
func (w *world) exists(name string) bool {
	w.Helper()
	_, err := w.fs.Stat(w.Context(), name)
	if tool.KindOf(err) == tool.Unsupported {
		w.Fatalf("the suite looks at files, and %v", describe(err)) // which waiting does not change
	}
	return err == nil
}

// abs is the absolute path of a file in the workspace.
func (w *world) abs(name string) string { return path.Join(w.env.Info().Root, name) }

// ran is what bash answers.
type ran struct {
	Command         string `json:"command"`
	ExitCode        int    `json:"exit_code"`
	Stdout          string `json:"stdout"`
	Stderr          string `json:"stderr"`
	StdoutTruncated bool   `json:"stdout_truncated"`
	StderrTruncated bool   `json:"stderr_truncated"`
	DurationMS      int64  `json:"duration_ms"`
	TimedOut        bool   `json:"timed_out"`
	Promoted        string `json:"promoted_process_id"`
}

type args map[string]any

// bash runs a command line.
func (w *world) bash(line string) ran {
	w.Helper()
	return into[ran](w, "bash", args{"command": line})
}

// sh runs a command line that must succeed and returns what it printed.
func (w *world) sh(line string) string {
	w.Helper()
	r := w.bash(line)
	if r.ExitCode != 0 {
		w.Fatalf("%s: exit code %d, %s%s", line, r.ExitCode, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// dead waits until the process with the pid in the file is gone, or a zombie
// that somebody has yet to reap.
func (w *world) dead(pidFile string) {
	w.Helper()
	pid := strings.TrimSpace(string(w.read(pidFile)))
	w.until("the end of process "+pid, func() bool {
		return w.bash("test -d /proc/"+pid+" && ! grep -q 'State:.Z' /proc/"+pid+"/status").ExitCode != 0
	})
}
