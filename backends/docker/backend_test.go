package docker

import (
	"os"
	"sync"
	"testing"

	"github.com/caisson-dev/caisson/backends"
	"github.com/caisson-dev/caisson/backends/backendtest"
	"github.com/caisson-dev/caisson/backends/docker/dockertest"
	"github.com/caisson-dev/caisson/backends/profile"
	"github.com/caisson-dev/caisson/backends/tool"
)

var buildFar = sync.OnceValues(func() (string, error) {
	if path := os.Getenv(testProgram); path != "" {
		return path, nil
	}
	return build("far")
})

// far is the real worker's program.
func far(t testing.TB) string {
	t.Helper()
	path, err := buildFar()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestBackend runs the suite of all backends against the kinds of images and
// users that differ in what can go wrong.
func TestBackend(t *testing.T) {
	shell := dockertest.UseShell(t)
	only := bare(t)
	tests := []struct {
		name    string
		image   string
		change  func(*profile.Profile)
		outside string
		lacks   backendtest.Lacks
	}{
		{name: "Shell", image: shell, outside: dockertest.Open},
		{name: "User", image: shell, outside: "/tmp", change: func(p *profile.Profile) {
			p.User, p.ReadOnlyRoot, p.TmpfsNoexec = dockertest.UserName, true, false
		}},
		{name: "OneFile", image: only, outside: "/tmp", change: func(p *profile.Profile) { p.ReadOnlyRoot = true },
			lacks: backendtest.Lacks{Shell: "the image has no shell", Git: "the image has no git"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			backendtest.Run(t, backendtest.Harness{
				Backend: func(t *testing.T) backends.Backend { return newBackend(t, far(t)) },
				Profile: func(t *testing.T, mode, ceiling tool.Mode) profile.Profile {
					p := newBinding(t, newBackend(t, far(t)), test.image).Profile
					p.PermissionMode, p.MaxPermissionMode = mode, ceiling
					if test.change != nil {
						test.change(&p)
					}
					return p
				},
				Outside: func(*testing.T) string { return test.outside },
				Leftovers: func(t *testing.T, b backends.Binding) []string {
					found := left(t, b.Store)
					if entries := must(os.ReadDir(b.RuntimeDir))(t); len(entries) > 0 {
						found = append(found, "in the runtime directory: "+entries[0].Name())
					}
					return found
				},
				Vanish: func(t *testing.T, b backends.Binding) {
					dockertest.Docker(t, "rm", "--force", "--volumes", b.Environment)
				},
				Lacks: test.lacks,
			})
		})
	}
}
