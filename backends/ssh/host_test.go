//go:build linux

package ssh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// patience is how long tests wait for what must happen.
const patience = 60 * time.Second

// until waits until ok reports true.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %v for this in vain: %s", patience, what)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// directory is that of the binding's environment.
func directory(b backends.Binding) string {
	return filepath.Join(b.Profile.Workspace, b.Environment)
}

func wantKind(t testing.TB, what string, err error, want tool.Kind) {
	t.Helper()
	if err == nil || tool.KindOf(err) != want {
		t.Errorf("%s: %v, want %s", what, err, want)
	}
}

// The link breaks in the middle of a write of 10 MiB: its outcome is unknown, it
// is not done again, and the next call works.
func TestCutInAWrite(t *testing.T) {
	t.Parallel() // it waits more than it works
	content := bytes.Repeat([]byte("0123456789abcde\n"), 10<<20/16)
	for name, accident := range map[string]func(b *box) (over func()){
		"the connection is cut": func(b *box) func() {
			b.proxy.CutAfter(3 << 20)
			return func() {}
		},
		"the server hangs": func(b *box) func() {
			// Enough has come in for the worker to have begun.
			b.proxy.After(3<<20, b.server.Freeze)
			return b.server.Thaw
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sshtest.Options{})
			binding := box.newBinding(t)
			env := open(t, newBackend(t), &binding)
			if _, err := call(t, env, "write_file", map[string]any{"path": "f", "content": "before\n"}); err != nil {
				t.Fatal(err)
			}
			over := accident(box)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := env.(backends.FileSystem).WriteFile(ctx, "f", content)
			wantKind(t, "the write", err, tool.OutcomeUnknown)
			over()
			// Whatever became of it, it is whole, and nothing writes it later.
			read := bash(t, env, "wc -c < f")
			if n := strings.TrimSpace(read); n != "7" && n != strconv.Itoa(len(content)) {
				t.Errorf("the file has %s bytes", n)
			}
			if _, err := call(t, env, "write_file", map[string]any{"path": "f", "content": "after\n"}); err != nil {
				t.Fatal(err)
			}
			if got := bash(t, env, "cat f"); got != "after\n" {
				t.Errorf("the file holds %.40q", got)
			}
		})
	}
}

const counter = `i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done`

// Processes go on while there is no connection, and their output continues at
// the byte.
func TestProcessesOutliveTheLink(t *testing.T) {
	t.Parallel() // it waits more than it works
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	env := open(t, newBackend(t), &binding)
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "count", Command: counter, Actor: binding.Session})
	if err != nil {
		t.Fatal(err)
	}
	var output []byte
	read := func(atLeast int) {
		t.Helper()
		want := len(output) + atLeast
		until(t, "output", func() bool {
			offset := int64(len(output))
			r, err := env.Processes().Read(testContext(t), p.ID, tool.ReadOptions{OffsetBytes: &offset, Wait: time.Second})
			if err != nil {
				t.Logf("reading: %v", err)
				return false
			}
			if r.StartOffset != offset {
				t.Fatalf("read from %d instead of %d", r.StartOffset, offset)
			}
			output = append(output, r.Output...)
			return len(output) >= want
		})
	}
	read(20)
	box.proxy.Refuse(true)
	box.proxy.Cut()
	_, err = call(t, env, "bash", map[string]any{"command": "true"})
	wantKind(t, "a call without a link", err, tool.BackendUnavailable)
	box.proxy.Refuse(false)
	read(20)
	box.server.Drop()
	read(20)
	for i, line := range bytes.Split(bytes.TrimSuffix(output[:bytes.LastIndexByte(output, '\n')+1], []byte("\n")), []byte("\n")) {
		if string(line) != strconv.Itoa(i) {
			t.Fatalf("line %d is %q", i, line)
		}
	}
	if now, err := env.Processes().Get(t.Context(), p.ID); err != nil || now.PID != p.PID || now.Status != tool.ProcessRunning {
		t.Errorf("%+v, %v", now, err)
	}
}

// A machine that was started anew has the files and none of the processes.
func TestMachineRestarted(t *testing.T) {
	t.Parallel() // it waits more than it works
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	binding.Profile.Persistent = true
	env := open(t, newBackend(t), &binding)
	p, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "sleep", Command: "echo kept > f; sleep 300", Actor: binding.Session})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the file", func() bool {
		data, _ := os.ReadFile(filepath.Join(directory(binding), "workspace", "f")) // it may not be there yet
		return string(data) == "kept\n"
	})
	for pid := range processes(t, binding) {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(n, syscall.SIGKILL) // it may have ended with its worker
	}
	var got string
	until(t, "the next call", func() bool {
		result, err := call(t, env, "read_file", map[string]any{"path": "f"})
		got = string(result.StructuredContent)
		return err == nil
	})
	if !strings.Contains(got, "kept") {
		t.Errorf("the file holds %s", got)
	}
	if now, err := env.Processes().Get(t.Context(), p.ID); err != nil || !now.Status.Terminal() {
		t.Errorf("%+v, %v", now, err)
	}
}

// A worker that is killed cannot remove its environment when its limit is over. Whoever
// uses the session next finds the files, and from then on the limit holds again; and
// whoever removes it leaves nothing, of the dead worker's processes neither.
func TestKilledWorker(t *testing.T) {
	t.Parallel() // it waits more than it works
	box := newBox(t, sshtest.Options{})
	killed := func(t *testing.T) backends.Binding {
		t.Helper()
		binding := box.newBinding(t)
		env, err := newBackend(t).Open(t.Context(), binding, nil)
		if err != nil {
			t.Fatal(err)
		}
		binding.Provisioned = true
		if _, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "sleep", Command: "echo kept > f; sleep 300", Actor: binding.Session}); err != nil {
			t.Fatal(err)
		}
		until(t, "the file", func() bool {
			// Its command dies with the worker, perhaps between making it and writing to it.
			written, err := os.ReadFile(filepath.Join(directory(binding), "workspace", "f"))
			return err == nil && string(written) == "kept\n"
		})
		if err := env.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		workers := 0
		for pid, line := range processes(t, binding) {
			if !strings.Contains(line, "\x00worker\x00") {
				continue
			}
			workers++
			n, err := strconv.Atoi(pid)
			if err = errors.Join(err, syscall.Kill(n, syscall.SIGKILL)); err != nil {
				t.Fatal(err)
			}
		}
		if workers != 1 {
			t.Fatalf("%d workers in %q", workers, processes(t, binding))
		}
		return binding
	}
	t.Run("used", func(t *testing.T) {
		binding := killed(t)
		binding.Profile.Lifetime = time.Second
		env, err := newBackend(t).Open(t.Context(), binding, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := bash(t, env, "cat f"); got != "kept\n" {
			t.Errorf("the file holds %q", got)
		}
		if list, err := env.Processes().List(t.Context()); err != nil || len(list) != 1 || !list[0].Status.Terminal() {
			t.Errorf("%+v, %v", list, err)
		}
		if err := env.Detach(t.Context()); err != nil {
			t.Error(err)
		}
		until(t, "its end", func() bool { return !exists(directory(binding)) && len(processes(t, binding)) == 0 })
	})
	t.Run("removed", func(t *testing.T) {
		binding := killed(t)
		if err := newBackend(t).Remove(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
		if exists(directory(binding)) {
			t.Error("its directory is there")
		}
		until(t, "the end of what it had started", func() bool { return len(processes(t, binding)) == 0 })
	})
}

// What was created and is gone is lost, in the same service and in the next, and
// never an empty workspace.
func TestGoneWhileInUse(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	b, binding := newBackend(t), box.newBinding(t)
	env, err := b.Open(t.Context(), binding, nil)
	if err != nil {
		t.Fatal(err)
	}
	binding.Provisioned = true
	vanish(t, binding)
	for range 2 {
		_, err := call(t, env, "write_file", map[string]any{"path": "f", "content": "x"})
		if kind := tool.KindOf(err); kind != tool.EnvironmentLost && kind != tool.OutcomeUnknown {
			t.Errorf("a call in what is gone: %v", err)
		}
	}
	if err := env.Detach(t.Context()); err != nil {
		t.Error(err)
	}
	_, err = newBackend(t).Open(t.Context(), binding, nil)
	wantKind(t, "open", err, tool.EnvironmentLost)
	if exists(directory(binding)) {
		t.Error("a directory was made")
	}
}

// An environment that nobody is connected to goes with its idle limit, its
// processes and all; a persistent one keeps its directory, and a shared one waits
// for the last session.
func TestIdle(t *testing.T) {
	t.Parallel() // it waits more than it works
	box := newBox(t, sshtest.Options{})
	detached := func(t *testing.T, b *Backend, binding *backends.Binding) {
		t.Helper()
		env, err := b.Open(t.Context(), *binding, nil)
		if err != nil {
			t.Fatal(err)
		}
		binding.Provisioned = true
		if _, err := env.Processes().Start(t.Context(), tool.StartRequest{OperationID: "sleep", Command: "sleep 300", Actor: binding.Session}); err != nil {
			t.Fatal(err)
		}
		if err := env.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("goes", func(t *testing.T) {
		binding := box.newBinding(t)
		binding.Profile.Lifetime = time.Second
		detached(t, newBackend(t), &binding)
		until(t, "its end", func() bool { return !exists(directory(binding)) && len(processes(t, binding)) == 0 })
		_, err := newBackend(t).Open(t.Context(), binding, nil)
		wantKind(t, "open", err, tool.EnvironmentLost)
	})
	t.Run("persistent", func(t *testing.T) {
		binding := box.newBinding(t)
		binding.Profile.Lifetime, binding.Profile.Persistent = time.Second, true
		b := newBackend(t)
		detached(t, b, &binding)
		until(t, "the worker's end", func() bool { return len(processes(t, binding)) == 0 })
		env := open(t, b, &binding)
		if list, err := env.Processes().List(t.Context()); err != nil || len(list) != 1 || !list[0].Status.Terminal() {
			t.Errorf("%+v, %v", list, err)
		}
	})
	t.Run("shared", func(t *testing.T) {
		b, one := newBackend(t), box.newBinding(t)
		one.Profile.Shared = true
		first := open(t, b, &one)
		two := one
		two.Session, two.Secrets.Token = "other-"+random(), random()+random()
		two.Profile.Lifetime = time.Second
		before := len(processes(t, one))
		detached(t, b, &two)
		until(t, "the end of the second's worker", func() bool { return len(processes(t, one)) == before })
		bash(t, first, "echo still > here")
	})
}

// Nothing secret is in arguments, nor on the machine's disk.
func TestSecrets(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	env := open(t, newBackend(t), &binding)
	if got := bash(t, env, "echo $HIDDEN"); got != "s3cret-value\n" {
		t.Fatalf("the variable is %q", got)
	}
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(directory(binding), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		for _, secret := range []string{"s3cret-value", binding.Secrets.Token} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds a secret: %.200q", path, data)
			}
		}
	}
	if strings.Contains(box.server.Log(), "s3cret-value") {
		t.Error("the server's log holds a secret")
	}
}

// A directory that is not proven to be ours is neither used nor removed.
func TestForeignDirectory(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	b, binding := newBackend(t), box.newBinding(t)
	kept := filepath.Join(directory(binding), "kept")
	if err := os.MkdirAll(kept, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, provisioned := range []bool{false, true} {
		binding.Provisioned = provisioned
		_, err := b.Open(t.Context(), binding, nil)
		wantKind(t, "open", err, tool.BackendUnavailable)
	}
	wantKind(t, "remove", b.Remove(t.Context(), binding), tool.BackendUnavailable)
	if !exists(kept) {
		t.Error("it was removed")
	}
	if err := os.RemoveAll(directory(binding)); err != nil {
		t.Fatal(err)
	}
}

// What a creation that was cut off has left is removed by the next one, unless
// its owner may still be at it.
func TestLeftByACreation(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	left := func(owner int) {
		t.Helper()
		other := newBackend(t)
		other.owner.PID, other.owner.Start = owner, ""
		h := &host{backend: other}
		if err := h.Create(t.Context(), binding, nil); err != nil {
			t.Fatal(err)
		}
	}
	left(os.Getppid())
	_, err := newBackend(t).Open(t.Context(), binding, nil)
	wantKind(t, "open of what is being made", err, tool.BackendUnavailable)
	if err := newBackend(t).Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	left(deadPID(t))
	if err := os.WriteFile(filepath.Join(directory(binding), "workspace", "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := open(t, newBackend(t), &binding)
	if got := bash(t, env, "ls"); got != "" {
		t.Errorf("the new workspace holds %q", got)
	}
}

// A creation that is given up leaves nothing.
func TestCreateCancelled(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	b := newBackend(t)
	first := box.newBinding(t)
	open(t, b, &first) // the worker is there
	for _, after := range []time.Duration{0, 10 * time.Millisecond, 30 * time.Millisecond, 60 * time.Millisecond} {
		binding := box.newBinding(t)
		ctx, cancel := context.WithTimeout(t.Context(), after)
		env, err := b.Open(ctx, binding, nil)
		cancel()
		if err == nil {
			err = errors.Join(env.Detach(testContext(t)), b.Remove(testContext(t), binding))
			if err != nil {
				t.Error(err)
			}
			continue
		}
		until(t, "nothing", func() bool { return len(leftovers(t, binding)) == 0 })
	}
}

// The opened folder is sent up when the profile says so, and only what is not
// ignored.
func TestCopy(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	binding.Profile.WorkspaceSource = sourceCopy
	binding.WorkspaceFolder = t.TempDir()
	for name, content := range map[string]string{
		"d/e/f": "deep\n", ".gitignore": "*.log\n", "x.log": "left out", "run": "#!/bin/sh\necho ran\n", "b\xffd": "odd",
	} {
		path := filepath.Join(binding.WorkspaceFolder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("d/e", filepath.Join(binding.WorkspaceFolder, "link")); err != nil {
		t.Fatal(err)
	}
	env := open(t, newBackend(t), &binding)
	if got := bash(t, env, "cat link/f; ./run; ls -d x.log 2>/dev/null || echo no log; cat b*"); got != "deep\nran\nno log\nodd" {
		t.Errorf("it holds %q", got)
	}
	// One that cannot be sent leaves nothing.
	second := box.newBinding(t)
	second.Profile.WorkspaceSource = sourceCopy
	second.WorkspaceFolder = filepath.Join(binding.WorkspaceFolder, "nowhere")
	if env, err := newBackend(t).Open(t.Context(), second, nil); err == nil {
		t.Error("a folder that is not there was sent", env.Detach(t.Context()))
	}
}

// What keeps the worker from starting is said at once, and not tried for a
// minute.
func TestAttachFails(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	b := newBackend(t)
	for name, test := range map[string]struct {
		spoil func(dir string) error
		kind  tool.Kind
		says  string
	}{
		"gone":      {os.RemoveAll, tool.EnvironmentLost, "is not there any more"},
		"no record": {func(dir string) error { return os.Remove(filepath.Join(dir, "environment.json")) }, tool.BackendUnavailable, "belongs to somebody else"},
		"no state": {func(dir string) error {
			state := filepath.Join(dir, "state")
			return errors.Join(os.Remove(state), os.WriteFile(state, nil, 0o600))
		}, tool.BackendUnavailable, "not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			binding := box.newBinding(t)
			h := &host{backend: b}
			if err := h.Create(t.Context(), binding, nil); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := os.RemoveAll(directory(binding)); err != nil {
					t.Error(err)
				}
			})
			if err := test.spoil(directory(binding)); err != nil {
				t.Fatal(err)
			}
			stream, err := h.Dial(t.Context(), binding)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			_, err = io.ReadAll(stream)
			wantKind(t, "the stream", err, test.kind)
			var e *tool.Error
			if !errors.As(err, &e) || e.Retryable || !strings.Contains(e.Message, test.says) {
				t.Errorf("%+v", e)
			}
		})
	}
}
