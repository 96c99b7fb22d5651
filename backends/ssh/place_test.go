package ssh

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pkg/sftp"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/ssh/connection"
	"github.com/caisson-dev/caisson/backends/ssh/sshtest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// placedIn are the workers in a candidate's directory.
func placedIn(t testing.TB, base string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(base, "worker", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(base, "worker", "*", ".*"))
	if err != nil {
		t.Fatal(err)
	}
	return append(found, hidden...)
}

// works opens an environment and tries it.
func works(t testing.TB, box *box) {
	t.Helper()
	binding := box.newBinding(t)
	env := open(t, newBackend(t), &binding)
	if out := bash(t, env, "pwd"); !strings.HasPrefix(out, box.parent) {
		t.Errorf("it works in %s", out)
	}
}

// Machines that are not as they should be, and work all the same.
func TestMachines(t *testing.T) {
	tests := map[string]struct {
		options sshtest.Options
		prepare func(t *testing.T, b *box)
		// placed is where the worker is to be found, below the home.
		placed string
	}{
		"no sftp":     {options: sshtest.Options{NoSFTP: true}},
		"broken sftp": {options: sshtest.Options{NoSFTP: true, Lines: []string{"Subsystem sftp /bin/false"}}},
		"one session": {options: sshtest.Options{MaxSessions: 1}},
		"banner":      {options: sshtest.Options{Banner: strings.Repeat("Authorised use only!\n", 100)}},
		"noisy startup": {prepare: func(t *testing.T, b *box) {
			b.write(t, ".bashrc", "echo hello; echo there >&2; printf '%s' 'no newline {'\n")
		}},
		"very noisy startup": {prepare: func(t *testing.T, b *box) {
			b.write(t, ".bashrc", "head -c 200000 /dev/zero | tr '\\0' x\n")
		}},
		"odd startup":             {prepare: func(t *testing.T, b *box) { b.write(t, ".bashrc", "set -e; set -u; set -f; umask 000; cd /\n") }},
		"umask against its owner": {prepare: func(t *testing.T, b *box) { b.write(t, ".bashrc", "umask 777\n") }},
		"other cache":             {options: sshtest.Options{Lines: []string{"SetEnv XDG_CACHE_HOME=relative"}}, placed: "elsewhere"},
		"quote in paths": {prepare: func(_ *testing.T, b *box) {
			b.parent = filepath.Join(filepath.Dir(b.parent), `it's a "$HOME" \ place!`)
		}},
		"deep": {prepare: func(_ *testing.T, b *box) { b.parent = filepath.Join(b.parent, strings.Repeat("deep/", 30), "end") }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, test.options)
			if test.prepare != nil {
				test.prepare(t, box)
			}
			works(t, box)
			if found := placedIn(t, filepath.Join(box.home, ".cache", "caisson")); test.placed == "" && len(found) != 1 {
				t.Errorf("the home holds %q", found)
			}
		})
	}
}

// write writes a file of the account's home.
func (b *box) write(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(b.home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A home that does not do is passed over, and nothing is executed or written
// where others could have.
func TestOtherPlaces(t *testing.T) {
	for name, spoil := range map[string]func(b *box) error{
		"a file is in the way": func(b *box) error { return os.WriteFile(filepath.Join(b.home, ".cache"), nil, 0o600) },
		"others may write":     func(b *box) error { return mkdirMode(filepath.Join(b.home, ".cache", "caisson"), 0o777) },
		"a link": func(b *box) error {
			if err := mkdirMode(filepath.Join(b.home, "elsewhere"), 0o700); err != nil {
				return err
			}
			if err := mkdirMode(filepath.Join(b.home, ".cache"), 0o700); err != nil {
				return err
			}
			return os.Symlink(filepath.Join(b.home, "elsewhere"), filepath.Join(b.home, ".cache", "caisson"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sshtest.Options{})
			if err := spoil(box); err != nil {
				t.Fatal(err)
			}
			works(t, box)
			if found := placedIn(t, filepath.Join(box.home, ".cache", "caisson")); len(found) > 0 {
				t.Errorf("the home holds %q", found)
			}
			beside := filepath.Join(box.parent, fmt.Sprintf(".caisson-%d", os.Getuid()))
			if found := placedIn(t, beside); len(found) != 1 {
				t.Errorf("beside the environments there is %q", found)
			}
		})
	}
}

func mkdirMode(dir string, mode os.FileMode) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, mode)
}

// What is in the worker's place and is something else is replaced, and never
// trusted for its name.
func TestWorkerReplaced(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	works(t, box)
	path := placedIn(t, filepath.Join(box.home, ".cache", "caisson"))[0]
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string][]byte{
		"torn":    good[:len(good)/2],
		"empty":   {},
		"text":    []byte("#!/bin/sh\necho ha\n"),
		"changed": append(bytes.Clone(good), "more"...),
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bad, 0o700); err != nil {
				t.Fatal(err)
			}
			works(t, box)
			if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, good) {
				t.Errorf("%d bytes, want %d; %v", len(now), len(good), err)
			}
		})
	}
	t.Run("not executable", func(t *testing.T) {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
		works(t, box) // elsewhere
	})
	// A backend that knows it to be there finds out that it is not.
	t.Run("removed", func(t *testing.T) {
		if err := os.RemoveAll(filepath.Join(box.home, ".cache")); err != nil {
			t.Fatal(err)
		}
		b := newBackend(t)
		first, second := box.newBinding(t), box.newBinding(t)
		open(t, b, &first)
		if err := os.RemoveAll(filepath.Join(box.home, ".cache")); err != nil {
			t.Fatal(err)
		}
		bash(t, open(t, b, &second), "true")
	})
}

// Two services put the worker there at the same time.
func TestPlacedAtOnce(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	var all sync.WaitGroup
	for range 4 {
		b, binding := newBackend(t), box.newBinding(t)
		all.Go(func() {
			ctx := testContext(t)
			env, err := b.Open(ctx, binding, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if err := env.Detach(ctx); err != nil {
				t.Error(err)
			}
			if err := b.Remove(ctx, binding); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if found := placedIn(t, filepath.Join(box.home, ".cache", "caisson")); len(found) != 1 || filepath.Base(found[0]) != workerName {
		t.Errorf("the home holds %q", found)
	}
}

// stuckSFTP is a machine whose sftp server never answers.
type stuckSFTP struct{ connection.Commands }

func (stuckSFTP) SFTP(ctx context.Context) (*sftp.Client, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// An sftp server that does nothing is given up long before an upload may be over.
func TestStuckSFTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		err := machine{Commands: stuckSFTP{}}.sendSFTP(t.Context(), "/x", strings.NewReader("x"), 1)
		if err == nil || time.Since(begun) != sftpTimeout {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// refused opens what cannot be opened, and returns what is said. Nothing is left.
func refused(t *testing.T, box *box, kind tool.Kind, change func(*backends.Binding)) string {
	t.Helper()
	binding := box.newBinding(t)
	if change != nil {
		change(&binding)
	}
	env, err := newBackend(t).Open(testContext(t), binding, nil)
	if err == nil {
		t.Fatal(env.Detach(testContext(t)), "it was opened")
	}
	if tool.KindOf(err) != kind || tool.HintOf(err) == "" {
		t.Errorf("%s: %v (%s); want %s", tool.KindOf(err), err, tool.HintOf(err), kind)
	}
	return err.Error() + " (" + tool.HintOf(err) + ")"
}

// An account that cannot run the worker, or anything, is told from a disk that does
// not run programs.
func TestHinderedAccount(t *testing.T) {
	for name, test := range map[string]struct{ startup, want, not string }{
		"no path":        {"PATH=/nonexistent\n", "leave a PATH", "runs Linux"},
		"no memory":      {"ulimit -v 200000\n", "ends at once", "noexec"},
		"no memory hint": {"ulimit -v 200000\n", "(ulimit -v)", "make one of these directories fit"},
		"no process":     {"exec /bin/sh -c 'echo \"sh: 1: Cannot fork\" >&2; exit 2'\n", "(ulimit -u)", "ForceCommand"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sshtest.Options{})
			box.write(t, ".bashrc", test.startup)
			if said := refused(t, box, tool.BackendUnavailable, nil); !strings.Contains(said, test.want) || strings.Contains(said, test.not) {
				t.Error(said)
			}
		})
	}
}

// Accounts that run no commands say so.
func TestRestricted(t *testing.T) {
	for name, test := range map[string]struct{ line, want string }{
		"forced": {"ForceCommand echo only backups here", "only backups here"},
		"false":  {"ForceCommand /bin/false", "ended with 1"},
		"sftp":   {"ForceCommand internal-sftp", "does not run commands"},
	} {
		t.Run(name, func(t *testing.T) {
			box := newBox(t, sshtest.Options{Lines: []string{test.line}})
			if said := refused(t, box, tool.BackendUnavailable, nil); !strings.Contains(said, test.want) || !strings.Contains(said, "ForceCommand") {
				t.Error(said)
			}
		})
	}
}

// A machine for which there is no worker is named, and so is the file that would
// help.
func TestOtherPlatform(t *testing.T) {
	for system, want := range map[string]string{
		"Linux riscv64":          "caisson-linux-riscv64",
		"Darwin arm64":           "caisson-darwin-arm64",
		"MINGW64_NT-10.0 x86_64": "MINGW64_NT-10.0 x86_64",
	} {
		t.Run(system, func(t *testing.T) {
			box := newBox(t, sshtest.Options{Lines: []string{"AcceptEnv NOTHING"}})
			name, machine, _ := strings.Cut(system, " ")
			box.write(t, "bin/uname", fmt.Sprintf("#!/bin/sh\ncase $1 in -s) echo %s;; *) echo %s;; esac\n", name, machine))
			box.write(t, ".bashrc", "PATH=$HOME/bin:$PATH\n")
			if said := refused(t, box, tool.Unsupported, nil); !strings.Contains(said, want) {
				t.Error(said)
			}
		})
	}
}

// A worker that the profile names is used as it is, and said to be none when it
// is not.
func TestNamedWorker(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	binding := box.newBinding(t)
	binding.Profile.Worker = far(t)
	bash(t, open(t, newBackend(t), &binding), "true")
	if found := placedIn(t, filepath.Join(box.home, ".cache", "caisson")); len(found) > 0 {
		t.Errorf("a worker was put there all the same: %q", found)
	}
	for worker, want := range map[string]string{
		"/nonexistent/caisson": "there is no /nonexistent/caisson",
		"/etc/passwd":          "cannot be executed",
		"/bin/echo":            "is not Caisson's worker",
	} {
		said := refused(t, box, tool.BackendUnavailable, func(b *backends.Binding) { b.Profile.Worker = worker })
		if !strings.Contains(said, want) {
			t.Error(said)
		}
	}
}

// A workspace that cannot be made says which member to change.
func TestUnusableWorkspace(t *testing.T) {
	box := newBox(t, sshtest.Options{})
	file := filepath.Join(box.home, "file")
	box.write(t, "file", "")
	dirs := []string{filepath.Join(file, "below")}
	if runtime.GOOS == "linux" {
		dirs = append(dirs, "/proc/caisson")
	}
	for _, dir := range dirs {
		said := refused(t, box, tool.BackendUnavailable, func(b *backends.Binding) { b.Profile.Workspace = dir })
		if !strings.Contains(said, dir) || !strings.Contains(said, `"workspace"`) {
			t.Error(said)
		}
	}
}
