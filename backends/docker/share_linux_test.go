package docker

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

// The worker comes over to a socket of ours whoever it runs as and wherever commands may
// write: they see the directory, and cannot write to it.
func TestSharedSocket(t *testing.T) {
	image := dockertest.UseShell(t)
	for _, test := range []struct {
		name   string
		change func(p *profile.Profile)
	}{
		{"standard", func(*profile.Profile) {}},
		{"unconfined", func(p *profile.Profile) {
			p.PermissionMode, p.MaxPermissionMode = tool.Unconfined, tool.Unconfined
		}},
		{"everything writable", func(p *profile.Profile) { p.WritablePaths = []string{"/"} }},
		{"another user", func(p *profile.Profile) { p.User = "4711:4711" }},
		{"a read-only root", func(p *profile.Profile) { p.ReadOnlyRoot = true }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "log")
			log := must(os.Create(path))(t)
			defer log.Close()
			b := New(Options{Executable: far(t), Version: testVersion, Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
			t.Cleanup(func() {
				if err := b.Close(); err != nil {
					t.Error(err)
				}
			})
			binding := newBinding(t, b, image)
			test.change(&binding.Profile)
			env := opened(t, b, binding)
			if said := must(os.ReadFile(path))(t); !bytes.Contains(said, []byte("shared_socket=true")) {
				t.Errorf("it stayed on the engine's stream:\n%s", said)
			}
			if got, status := bash(t, env, "(: >"+shareDir+"/x) 2>&1"); status == 0 {
				t.Errorf("a command writes to the host's directory: %s", got)
			}
			if left := must(os.ReadDir(sharePath(binding)))(t); len(left) > 0 {
				t.Errorf("left there: %v", left)
			}
		})
	}
}

// A directory that the container could write to by another mount is not shared.
func TestMounted(t *testing.T) {
	dir := t.TempDir()
	run, link := filepath.Join(dir, "run"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(run, 0o700), os.Symlink(dir, link)); err != nil {
		t.Fatal(err)
	}
	share := filepath.Join(run, "d-1")
	for name, test := range map[string]struct {
		profile profile.Profile
		want    bool
	}{
		"nothing":                  {profile.Profile{}, false},
		"its parent":               {profile.Profile{Mounts: []profile.Mount{{Source: run, Target: "/x"}}}, true},
		"its parent, read-only":    {profile.Profile{Mounts: []profile.Mount{{Source: run, Target: "/x", ReadOnly: true}}}, false},
		"by a link":                {profile.Profile{Mounts: []profile.Mount{{Source: link, Target: "/x"}}}, true},
		"something beside it":      {profile.Profile{Mounts: []profile.Mount{{Source: run + "2", Target: "/x"}}}, false},
		"something below it":       {profile.Profile{Mounts: []profile.Mount{{Source: filepath.Join(share, "x"), Target: "/x"}}}, false},
		"everything":               {profile.Profile{Mounts: []profile.Mount{{Source: "/", Target: "/x"}}}, true},
		"the workspace":            {profile.Profile{HostWorkspace: dir}, true},
		"the workspace, read-only": {profile.Profile{HostWorkspace: dir, MountReadOnly: true}, false},
	} {
		if got := mounted(test.profile, share); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
