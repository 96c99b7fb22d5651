package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/tool"
)

// repository is a folder with a git repository, ignored files, links and names
// that are hard to carry.
func repository(t *testing.T) string {
	t.Helper()
	folder := privateDir(t)
	for name, content := range map[string]string{
		".gitignore": "node_modules/\n.env\n", "main.go": "package main\n", "node_modules/x/index.js": "x",
		".env": "SECRET=1\n", "src/deep/file": "deep\n", "not-utf8-\xff": "bytes\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(folder, name), content)
	}
	write(t, filepath.Join(folder, "run.sh"), "#!/bin/sh\necho ran\n")
	err := errors.Join(
		os.Chmod(filepath.Join(folder, "run.sh"), 0o750),
		os.Chmod(filepath.Join(folder, "src/deep/file"), 0o604),
		os.Symlink("main.go", filepath.Join(folder, "inside")),
		os.Symlink("/etc/passwd", filepath.Join(folder, "leaves")),
		os.Symlink("nowhere", filepath.Join(folder, "dangling")),
	)
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"}, {"add", "-A"},
		{"-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "-qm", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "HOME="+folder, "GIT_CONFIG_NOSYSTEM=1")
		if said, gitErr := cmd.CombinedOutput(); gitErr != nil {
			err = errors.Join(err, fmt.Errorf("git %s: %w: %s", args, gitErr, said))
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// The folder is in the container when its session begins, and is the session's
// own from then on.
func TestCopy(t *testing.T) {
	image := dockertest.UseShell(t)
	folder := repository(t)
	b := newBackend(t, far(t))
	for _, user := range []string{"", dockertest.UserName} {
		t.Run("user "+user, func(t *testing.T) {
			binding := newBinding(t, b, image)
			binding.WorkspaceFolder = folder
			binding.Profile.WorkspaceSource = sourceCopy
			binding.Profile.User, binding.Profile.ReadOnlyRoot = user, user != ""
			binding.Profile.Persistent = true
			binding.Secrets.Token = b.random() + b.random()
			env := opened(t, b, binding)

			id := map[string]string{"": "0:0", dockertest.UserName: "1000:1000"}[user]
			want := strings.Join([]string{
				".env missing", "node_modules missing", "run.sh " + id + " 750", "src/deep/file " + id + " 604",
				"inside -> main.go", "leaves -> /etc/passwd", "dangling -> nowhere", "bytes", "clean", "first", "ran", "",
			}, "\n")
			got, _ := bash(t, env, `for f in .env node_modules; do test -e $f || echo $f missing; done
				stat -c '%n %u:%g %a' run.sh src/deep/file
				for f in inside leaves dangling; do echo "$f -> $(readlink $f)"; done
				cat not-utf8-*
				test -z "$(git status --porcelain)" && echo clean
				git log -1 --format=%s
				./run.sh`)
			if got != want {
				t.Errorf("the container has\n%swant\n%s", got, want)
			}

			// What the session does is not the folder's, and nothing is sent again.
			bash(t, env, "echo changed > main.go; rm run.sh")
			write(t, filepath.Join(folder, "src/deep/file"), "changed on the host\n")
			if err := env.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			binding.Provisioned = true
			env = opened(t, b, binding)
			if got, _ := bash(t, env, "cat main.go src/deep/file; test -e run.sh || echo gone"); got != "changed\ndeep\ngone\n" {
				t.Errorf("after resuming: %q", got)
			}
			if got := string(must(os.ReadFile(filepath.Join(folder, "main.go")))(t)); got != "package main\n" {
				t.Errorf("the folder's file is %q", got)
			}
			write(t, filepath.Join(folder, "src/deep/file"), "deep\n")
			if err := b.Remove(t.Context(), binding); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A container that was lost is not passed off as a new copy of the folder.
func TestCopyIsNotRepeated(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.WorkspaceFolder = privateDir(t)
	binding.Profile.WorkspaceSource = sourceCopy
	h, binding := created(t, b, binding)
	if err := h.Remove(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	if err := h.Attach(t.Context(), binding); tool.KindOf(err) != tool.EnvironmentLost {
		t.Errorf("got %v", err)
	}
}

// Whatever ends the sending, at whatever moment, nothing is left.
func TestCopyFails(t *testing.T) {
	image := bare(t)
	b := newBackend(t, echo(t))
	large := privateDir(t)
	for i := range 3 {
		write(t, filepath.Join(large, fmt.Sprint(i)), strings.Repeat("0123456789abcdef", 1<<20))
	}
	binding := newBinding(t, b, image)
	binding.WorkspaceFolder = large
	binding.Profile.WorkspaceSource = sourceCopy
	nothing := func(t *testing.T) {
		t.Helper()
		if got := left(t, binding.Store); len(got) > 0 {
			t.Errorf("left: %q", got)
		}
	}
	h, binding, err := b.host(binding)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var once sync.Once
		err := h.Create(ctx, binding, func(step string) {
			if strings.HasPrefix(step, "sending the folder") {
				once.Do(cancel)
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		nothing(t)
	})
	t.Run("changed", func(t *testing.T) {
		err := h.Create(t.Context(), binding, func(step string) {
			if strings.HasPrefix(step, "sending the folder") {
				if err := os.Truncate(filepath.Join(large, "2"), 0); err != nil {
					t.Error(err)
				}
				// Measured when it was larger; what is sent is what is there now.
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Remove(t.Context(), binding); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("no folder", func(t *testing.T) {
		gone := binding
		gone.WorkspaceFolder = filepath.Join(large, "none")
		if err := h.Create(t.Context(), gone, nil); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("got %v", err)
		}
		nothing(t)
		none := newBinding(t, b, image)
		none.Profile.WorkspaceSource = sourceCopy
		if _, err := b.Open(t.Context(), none, nil); tool.KindOf(err) != tool.ConfigInvalid {
			t.Errorf("without a folder: %v", err)
		}
	})
	t.Run("too large", func(t *testing.T) {
		write(t, filepath.Join(large, "huge"), "")
		if err := os.Truncate(filepath.Join(large, "huge"), 3<<30); err != nil { // sparse
			t.Fatal(err)
		}
		err := h.Create(t.Context(), binding, nil)
		if tool.KindOf(err) != tool.Unsupported || !strings.Contains(err.Error(), "2048 MiB") || !strings.Contains(tool.HintOf(err), ".gitignore") {
			t.Errorf("got %v (%s)", err, tool.HintOf(err))
		}
		nothing(t)
	})
}

// A check of the profile sends nothing.
func TestCheckOfACopy(t *testing.T) {
	b := newBackend(t, far(t))
	p := newBinding(t, b, bare(t)).Profile
	p.WorkspaceSource = sourceCopy
	if health := b.Check(t.Context(), p); !health.OK {
		t.Errorf("%+v", health)
	}
}

// entries reads a directory of a container whole.
func entries(t *testing.T, e *engine, binding backends.Binding) map[string]*tar.Header {
	t.Helper()
	archive := must(e.get(t.Context(), binding.Environment, "/workspace"))(t)
	defer archive.Close()
	all := map[string]*tar.Header{}
	for r := tar.NewReader(archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h
	}
}

func TestCopyOfAnEmptyFolder(t *testing.T) {
	b := newBackend(t, echo(t))
	binding := newBinding(t, b, bare(t))
	binding.WorkspaceFolder = privateDir(t)
	binding.Profile.WorkspaceSource = sourceCopy
	h, binding := created(t, b, binding)
	if got := entries(t, h.engine, binding); len(got) != 1 {
		t.Errorf("the workspace has %v", got)
	}
}
